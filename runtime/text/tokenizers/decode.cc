#include "runtime/text/tokenizers/decode.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {

// One decoding step, fed with pieces of tokens. It holds back what it cannot decide yet and passes the rest to the next
// step.
class DecodeStage {
 public:
  explicit DecodeStage(DecodeStage* next) : next_(next) {}
  virtual ~DecodeStage() = default;
  virtual void Add(std::string_view piece) = 0;  // a piece of the current token
  virtual void EndToken() { next_->EndToken(); }
  virtual void End() { next_->End(); }  // no token follows
  virtual void Forget() { next_->Forget(); }

 protected:
  void Token(std::string_view token) {
    next_->Add(token);
    next_->EndToken();
  }
  DecodeStage& next() { return *next_; }

 private:
  DecodeStage* next_;
};

namespace {

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

enum class Front { kCharacter, kFault, kOpen };  // kOpen: more bytes may make it a character

// Classifies the front of `bytes`, and returns how many bytes that front has.
std::pair<size_t, Front> ClassifyFront(std::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0x80) return {1, Front::kCharacter};
  if (lead < 0xc2 || lead > 0xf4) return {1, Front::kFault};
  const size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {i, Front::kOpen};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = i > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte < low || byte > high) return {i, Front::kFault};
  }
  return {size, Front::kCharacter};
}

// Moves bytes to the text. If more may come, an incomplete character at the end stays in `bytes`.
void AppendBytes(std::string& bytes, bool more_may_come, std::string& text) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const auto [size, front] = ClassifyFront(rest);
    if (front == Front::kOpen && more_may_come) break;
    text += front == Front::kCharacter ? rest.substr(0, size) : kReplacementCharacter;
    rest.remove_prefix(size);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

class Output : public DecodeStage {
 public:
  explicit Output(std::string& text) : DecodeStage(nullptr), text_(text) {}
  void Add(std::string_view piece) override { text_ += piece; }
  void EndToken() override {}
  void End() override {}
  void Forget() override { text_.clear(); }

 private:
  std::string& text_;
};

// The base of steps that need a token as a whole.
class WholeTokens : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;
  void Add(std::string_view piece) override { token_ += piece; }
  void EndToken() override {
    Take(token_);
    token_.clear();
  }

 private:
  virtual void Take(std::string& token) = 0;
  std::string token_;
};

// The step that is used without a decoder: spaces between tokens.
class Spaces : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;
  void Add(std::string_view piece) override {
    if (ended_) next().Add(" ");
    ended_ = false;
    next().Add(piece);
  }
  void EndToken() override { ended_ = true; }

 private:
  bool ended_ = false;
};

class Replace : public DecodeStage {
 public:
  Replace(std::string_view from, std::string_view to, DecodeStage* next) : DecodeStage(next), from_(from), to_(to) {}
  void Add(std::string_view piece) override {
    held_ += piece;
    const std::string_view text = held_;
    size_t at = 0;
    for (size_t found; (found = text.find(from_, at)) != std::string_view::npos; at = found + from_.size()) {
      next().Add(text.substr(at, found - at));
      next().Add(to_);
    }
    size_t open = std::min(text.size() - at, from_.size() - 1);
    while (!from_.starts_with(text.substr(text.size() - open))) --open;
    next().Add(text.substr(at, text.size() - open - at));
    held_.erase(0, held_.size() - open);
  }
  void EndToken() override {
    next().Add(held_);
    held_.clear();
    next().EndToken();
  }
  void Forget() override {
    held_.clear();
    next().Forget();
  }

 protected:
  void set_to(std::string_view to) { to_ = to; }

 private:
  std::string_view from_, to_;
  std::string held_;
};

class Metaspace : public Replace {
 public:
  Metaspace(const Step& step, DecodeStage* next) : Replace(step.a, step.options != 0 ? "" : " ", next) {}
  void EndToken() override {
    Replace::EndToken();
    set_to(" ");
  }
};

class WordPiece : public WholeTokens {
 public:
  WordPiece(const Step& step, DecodeStage* next) : WholeTokens(next), prefix_(step.a), cleans_up_(step.options != 0) {}

 private:
  void Take(std::string& token) override {
    constexpr std::pair<std::string_view, std::string_view> kCleanUp[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    if (!std::exchange(first_, false)) {
      if (std::string_view(token).starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    for (const auto& [from, to] : kCleanUp) {
      for (size_t at = 0; cleans_up_ && (at = token.find(from, at)) != std::string::npos; at += to.size())
        token.replace(at, from.size(), to);
    }
    Token(token);
  }

  std::string_view prefix_;
  bool cleans_up_, first_ = true;
};

// Joins all tokens into one.
class Fuse : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;
  void Add(std::string_view piece) override { next().Add(piece); }
  void EndToken() override {}
  void End() override {
    next().EndToken();
    next().End();
  }
};

class ByteLevel : public WholeTokens {
 public:
  using WholeTokens::WholeTokens;
  void End() override {
    Show(/*more_may_come=*/false);
    next().EndToken();
    next().End();
  }
  void Forget() override {
    bytes_.clear();
    next().Forget();
  }

 private:
  void Take(std::string& token) override {
    const size_t before = bytes_.size();
    for (size_t at = 0; at < token.size();) {
      const Character c = CharacterAt(token, at);
      const int byte = LetterToByte(c.code);
      if (byte < 0) {  // the token stands for no bytes; keep its text
        bytes_.resize(before);
        bytes_ += token;
        break;
      }
      bytes_ += static_cast<char>(byte);
      at += c.size;
    }
    Show(/*more_may_come=*/true);
  }

  void Show(bool more_may_come) {
    std::string text;
    AppendBytes(bytes_, more_may_come, text);
    next().Add(text);
  }

  std::string bytes_;  // the beginning of a character
};

// Consecutive byte tokens become text if their bytes are UTF-8; otherwise each byte becomes U+FFFD. So nothing is
// written before the last of them is known.
class ByteFallback : public WholeTokens {
 public:
  using WholeTokens::WholeTokens;
  void End() override {
    EndRun();
    next().End();
  }
  void Forget() override {
    run_.clear();
    whole_ = 0;
    next().Forget();
  }

 private:
  void Take(std::string& token) override {
    const int byte = ParseFallbackByte(token);
    if (byte < 0) {
      EndRun();
      return Token(token);
    }
    run_ += static_cast<char>(byte);
    Front front = Front::kCharacter;
    while (!faulty_ && front == Front::kCharacter && whole_ < run_.size()) {
      size_t size = 0;
      std::tie(size, front) = ClassifyFront(std::string_view(run_).substr(whole_));
      if (front == Front::kCharacter) whole_ += size;
    }
    faulty_ = faulty_ || front == Front::kFault;
    if (faulty_) ShowFaults();
  }

  void EndRun() {
    if (whole_ < run_.size()) {
      ShowFaults();
    } else if (!run_.empty()) {
      Token(run_);
    }
    run_.clear();
    whole_ = 0;
    faulty_ = false;
  }

  void ShowFaults() {
    for (size_t i = 0; i < run_.size(); ++i) Token(kReplacementCharacter);
    run_.clear();
    whole_ = 0;
  }

  std::string run_;   // bytes of the run that have not been passed on
  size_t whole_ = 0;  // bytes at its front that form whole characters
  bool faulty_ = false;
};

// Removes a given number of one character at the front and at the end of each token.
class Strip : public DecodeStage {
 public:
  Strip(const Step& step, DecodeStage* next)
      : DecodeStage(next), strip_(step.a), front_(step.options & 0xffff), back_(step.options >> 16), left_(front_) {}
  void Add(std::string_view piece) override {
    held_ += piece;
    for (; left_ > 0 && held_.starts_with(strip_); --left_) held_.erase(0, strip_.size());
    if (left_ > 0 && strip_.starts_with(held_)) return;  // the held piece may still become that character
    left_ = 0;
    const size_t keep = back_ * strip_.size();
    if (held_.size() <= keep) return;
    size_t end = held_.size() - keep;
    while (end > 0 && (static_cast<uint8_t>(held_[end]) & 0xc0) == 0x80) --end;
    next().Add(std::string_view(held_).substr(0, end));
    held_.erase(0, end);
  }
  void EndToken() override {
    for (size_t i = 0; i < back_ && held_.ends_with(strip_); ++i) held_.resize(held_.size() - strip_.size());
    Token(held_);
    held_.clear();
    left_ = front_;
  }
  void Forget() override {
    held_.clear();
    next().Forget();
  }

 private:
  std::string_view strip_;
  size_t front_, back_;
  size_t left_;  // how many to strip at the front of this token
  std::string held_;
};

std::unique_ptr<DecodeStage> MakeStage(const Step& step, DecodeStage* next) {
  switch (static_cast<DecodeKind>(step.kind)) {
    case DecodeKind::kWordPiece:
      return std::make_unique<WordPiece>(step, next);
    case DecodeKind::kByteLevel:
      return std::make_unique<ByteLevel>(next);
    case DecodeKind::kMetaspace:
      return std::make_unique<Metaspace>(step, next);
    case DecodeKind::kReplace:
      return std::make_unique<Replace>(step.a, step.b, next);
    case DecodeKind::kByteFallback:
      return std::make_unique<ByteFallback>(next);
    case DecodeKind::kFuse:
      return std::make_unique<Fuse>(next);
    case DecodeKind::kStrip:
      return std::make_unique<Strip>(step, next);
  }
  return nullptr;  // cannot happen: images are checked
}

}  // namespace

Decoding::Decoding(const Image& image) : text_(std::make_unique<std::string>()) {
  stages_.push_back(std::make_unique<Output>(*text_));
  if (image.decoders.empty()) stages_.push_back(std::make_unique<Spaces>(stages_.back().get()));
  for (auto step = image.decoders.rbegin(); step != image.decoders.rend(); ++step)
    stages_.push_back(MakeStage(*step, stages_.back().get()));
}
Decoding::Decoding(Decoding&&) noexcept = default;
Decoding& Decoding::operator=(Decoding&&) noexcept = default;
Decoding::~Decoding() = default;

void Decoding::Add(std::string_view token) {
  stages_.back()->Add(token);
  stages_.back()->EndToken();
}

void Decoding::End() { stages_.back()->End(); }

void Decoding::Forget() { stages_.back()->Forget(); }

std::string Decoding::Take() { return std::exchange(*text_, {}); }

std::string ToUtf8(std::string_view bytes) {
  std::string text, all(bytes);
  AppendBytes(all, /*more_may_come=*/false, text);
  return text;
}

// Printable bytes of Latin-1 stand for themselves. The other bytes map to U+0100 and up, in order.
uint32_t ByteToLetter(uint8_t byte) {
  const auto printable = [](uint32_t b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae; };
  if (printable(byte)) return byte;
  if (byte <= 0x20) return 0x100u + byte;
  if (byte <= 0xa0) return 0x100u + 0x21 + (byte - 0x7fu);
  return 0x100u + 0x43;  // 0xad
}

int LetterToByte(uint32_t code) {
  if (code < 0x100) return ByteToLetter(static_cast<uint8_t>(code)) == code ? static_cast<int>(code) : -1;
  if (code <= 0x120) return static_cast<int>(code - 0x100);
  if (code <= 0x142) return static_cast<int>(code - 0x121 + 0x7f);
  return code == 0x143 ? 0xad : -1;
}

int ParseFallbackByte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const char* begin = token.data() + 3;
  if (*begin == '+') ++begin;  // the reference accepts a sign
  unsigned byte = 0;
  const auto read = std::from_chars(begin, token.data() + 5, byte, 16);
  return read.ec == std::errc() && read.ptr == token.data() + 5 ? static_cast<int>(byte) : -1;
}

}  // namespace wisp::text
