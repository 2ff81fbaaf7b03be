// The reader of safetensors files on good files, every kind of wrong one, and random damage; the names of PyTorch.
#include "tools/convert/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/model/model_test_util.h"
#include "tools/convert/torch_names.h"

namespace wisp::convert::safetensors_test {
namespace {

using test::ReadBytes;
using test::TemporaryFolder;

// Returns a file of this header and this many bytes of data: 0, 1, 2, ...
std::string MakeFile(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

// On the heap and exactly as long as the file, so that a sanitizer sees a read past the end.
struct Parsed {
  explicit Parsed(const std::string& file)
      : bytes(file.begin(), file.end()), result(SafeTensorsFile::Parse("f", std::as_bytes(std::span(bytes)))) {}
  std::vector<char> bytes;
  Result<SafeTensorsFile> result;
};

void ExpectRefused(const std::string& file, const std::string& words, StatusCode code = StatusCode::kInvalidData) {
  SCOPED_TRACE(file.size() < 300 ? file : file.substr(0, 300) + "...");
  const Parsed parsed(file);
  ASSERT_FALSE(parsed.result.ok()) << words;
  EXPECT_EQ(parsed.result.status().code(), code) << parsed.result.status().message();
  EXPECT_NE(parsed.result.status().message().find(words), std::string::npos)
      << parsed.result.status().message() << "\nexpected: " << words;
  EXPECT_EQ(parsed.result.status().message().rfind("f: ", 0), 0u) << parsed.result.status().message();
}

// Headers, each with the expected message.
void ExpectHeadersRefused(std::initializer_list<std::pair<std::string, const char*>> headers) {
  for (const auto& [header, words] : headers) ExpectRefused(MakeFile(header, 0), words);
}

const std::string kGood =
    R"({"__metadata__":{"format":"pt","k":"v"},"b":{"dtype":"F16","shape":[2],"data_offsets":[24,28]},)"
    R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[28,28]},)"
    R"("s":{"data_offsets":[28,32],"shape":[],"dtype":"F32"}}  )";
// Returns a header of one tensor; the rest of the header replaces each %.
std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"t\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

// Files of one tensor, each with the expected message.
struct OneTensor {
  const char *shape, *offsets, *words;
  size_t data_bytes = 0;
  const char* dtype = "\"F32\"";
  StatusCode code = StatusCode::kInvalidData;
};
void ExpectTensorsRefused(std::initializer_list<OneTensor> tensors) {
  for (const OneTensor& t : tensors)
    ExpectRefused(MakeFile(One(t.dtype, t.shape, t.offsets), t.data_bytes), t.words, t.code);
}

TEST(SafeTensors, GoodFile_IsReadInTheOrderOfItsData) {
  const Parsed parsed(MakeFile(kGood, 32));
  ASSERT_TRUE(parsed.result.ok()) << parsed.result.status().message();
  const SafeTensorsFile& f = *parsed.result;
  ASSERT_EQ(f.tensors().size(), 4u);
  EXPECT_EQ(f.tensors()[0].name, "a");
  EXPECT_EQ(f.tensors()[1].name, "b");
  EXPECT_EQ(f.metadata().size(), 2u);
  EXPECT_EQ(f.metadata().at("k"), "v");
  EXPECT_EQ(f.Find("none"), nullptr);
  const SafeTensor* a = f.Find("a");
  EXPECT_EQ(a->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(a->num_elements(), 6u);
  float values[6];
  a->CopyTo(values);
  EXPECT_EQ(std::memcmp(values, a->bytes.data(), 24), 0);
  EXPECT_EQ(f.Find("e")->num_elements(), 0u);
  EXPECT_EQ(f.Find("s")->num_elements(), 1u);
  EXPECT_TRUE(Parsed(MakeFile("{}", 0)).result.ok());
}

TEST(SafeTensors, MovedFile_KeepsItsTensors) {
  const TemporaryFolder folder;
  const float values[] = {1, 2, 3};
  const TensorToWrite tensor{.name = "t", .shape = {3}, .values = values};
  ASSERT_TRUE(WriteSafeTensors(folder / "a", std::span(&tensor, 1), {}).ok());
  Result<SafeTensorsFile> opened = SafeTensorsFile::Open(folder / "a");
  ASSERT_TRUE(opened.ok());
  const SafeTensorsFile moved = *std::move(opened);
  float read[3];
  moved.Find("t")->CopyTo(read);
  EXPECT_EQ(read[2], 3.0f);
}

TEST(SafeTensors, LengthOfHeader_IsHeldAgainstTheFile) {
  ExpectRefused("", "it has 0 bytes");
  ExpectRefused("1234567", "it has 7 bytes");
  std::string file = MakeFile(kGood, 32);
  const auto with_length = [&](uint64_t length) {
    std::memcpy(file.data(), &length, 8);
    return file;
  };
  ExpectRefused(with_length(file.size() - 7), "it is cut short, or damaged: the header promises " +
                                                  std::to_string(file.size() - 7) + " bytes of itself, there are " +
                                                  std::to_string(file.size() - 8));
  for (uint64_t length :
       {uint64_t{0}, uint64_t{1}, kMaxHeaderBytes + 1, ~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63}) {
    ExpectRefused(with_length(length), "the header's length is " + std::to_string(length) + ", allowed are 2 to " +
                                           std::to_string(file.size() - 8));
  }
  ExpectRefused(with_length(kGood.size() - 3), "not JSON");
  ExpectRefused(with_length(kGood.size() + 1), "not JSON");
  // The format's own limit, in a file that is long enough.
  std::string huge(kMaxHeaderBytes + 100, ' ');
  const uint64_t length = kMaxHeaderBytes + 1;
  std::memcpy(huge.data(), &length, 8);
  ExpectRefused(huge, "allowed are 2 to 100000000");
}

TEST(SafeTensors, HeaderThatIsNotJson_IsRefused) {
  ExpectHeadersRefused({{"[]", "begins with '['"},
                        {" {}", "begins with ' '"},
                        {"{]", "not JSON at byte 2"},
                        {"{}{}", "not JSON"},
                        {"{} x", "not JSON"},
                        {std::string("{}\0", 3), "not JSON at byte 3: a byte 0"},
                        {"{\"\xff\":1}", "UTF-8"},
                        {"{\"__metadata__\":{\"a\":\"\xc3\x28\"}}", "UTF-8"},
                        {"{\"a\":NaN}", "not JSON"},
                        {"{\"a\":{\"shape\":[1e999]}}", "not JSON"},
                        // Depth costs nothing: the first level that is not allowed is refused.
                        {"{\"t\":{\"shape\":" + std::string(200000, '['), "tensor 't': 'shape' holds a list"},
                        {"{\"t\":{\"shape\":{\"a\":1}}}", "is an object"}});
}

TEST(SafeTensors, KeysAndKinds_AreThoseOfTheFormat) {
  ExpectHeadersRefused(
      {{R"({"t":1})", "tensor 't' is 1, allowed is an object"},
       {R"({"t":null})", "tensor 't' is null"},
       {R"({"t":[]})", "tensor 't' is a list"},
       {R"({"t":{}})", "tensor 't' has no dtype"},
       {R"({"t":{"dtype":"F32","shape":[]}})", "tensor 't' has no data_offsets"},
       {R"({"t":{"dtype":"F32","extra":1}})", "unknown key 'extra', allowed are dtype, shape and data_offsets"},
       {R"({"t":{"dtype":"F32","dtype":"F32"}})", "the key 'dtype' twice"},
       {R"({"__metadata__":{"a":1}})", "__metadata__: 'a' is 1, allowed are texts"},
       {R"({"__metadata__":{"a":{}}})", "__metadata__: 'a' is an object"},
       {R"({"__metadata__":{"a":["x"]}})", "__metadata__: 'a' is a list"},
       {R"({"__metadata__":{"a":"x","a":"y"}})", "__metadata__ has the key 'a' twice"},
       {R"({"__metadata__":"x"})", "is 'x', allowed is an object"},
       {R"({"__metadata__":{},"__metadata__":{}})", "is there twice"},
       {"{\"" + std::string(kMaxNameBytes + 1, 'n') + "\":{}}", "has 1025 bytes, allowed are 1024"}});
  ExpectTensorsRefused(
      {{.shape = "[]", .offsets = "[0,0]", .words = "'dtype' is 1, allowed is the name of a type", .dtype = "1"},
       {"3", "[0,0]", "'shape' is 3, allowed is a list"},
       {"[true]", "[0,0]", "'shape' holds true"},
       {"[\"1\"]", "[0,0]", "'shape' holds '1'"},
       {"[-1]", "[0,0]", "'shape' holds -1, allowed are whole numbers"},
       {"[1.0]", "[0,0]", "'shape' holds '1.0'"},
       {"[18446744073709551616]", "[0,0]", "'shape' holds '18446744073709551616'"},
       {"[1,1,1,1,1,1,1,1,1]", "[0,4]", "more than 8 numbers, allowed are up to 8", 4},
       {"[1]", "[0]", "'data_offsets' has 1 numbers, allowed are exactly 2", 4},
       {"[1]", "[0,4,4]", "'data_offsets' has more than 2 numbers", 4}});
  const std::string t = R"("t":{"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  ExpectRefused(MakeFile("{" + t + "," + t + "}", 4), "tensor 't' is there twice");
}

TEST(SafeTensors, Counts_AreBounded) {
  std::string many = "{", metadata = "{\"__metadata__\":{";
  for (size_t i = 0; i <= kMaxTensors; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  ExpectRefused(MakeFile(many + "}", 0), "more than 100000 tensors");
  for (size_t i = 0; i <= kMaxMetadataEntries; ++i) metadata += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  ExpectRefused(MakeFile(metadata + "}}", 0), "more than 10000 entries");
}

// Other programs keep masks and positions beside weights. They are accepted on request, and their size is checked.
TEST(SafeTensors, OtherTypesAreReadWhereAllAreAccepted) {
  const auto parse = [](const std::string& file) {
    return SafeTensorsFile::Parse("f", std::as_bytes(std::span(file)), AcceptedTypes::kAll);
  };
  const std::string good = MakeFile(One("\"I64\"", "[1,2]", "[0,16]"), 16);
  const auto file = parse(good);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->Find("t")->num_elements(), 2u);
  EXPECT_FALSE(IsWeight(file->Find("t")->type));
  EXPECT_FALSE(parse(MakeFile(One("\"BOOL\"", "[3]", "[0,2]"), 2)).ok());
  EXPECT_FALSE(parse(MakeFile(One("\"I128\"", "[1]", "[0,16]"), 16)).ok());
  EXPECT_FALSE(SafeTensorsFile::Parse("f", std::as_bytes(std::span(good))).ok());
}

TEST(SafeTensors, Sizes_AreThoseOfTheData) {
  EXPECT_TRUE(Parsed(MakeFile(One("\"F32\"", "[1]", "[0,4]"), 4)).result.ok());
  for (const char* dtype : {"\"F64\"", "\"I64\"", "\"BOOL\"", "\"f32\"", "\"F8_E4M3\"", "\"\""}) {
    ExpectTensorsRefused({{.shape = "[1]",
                           .offsets = "[0,4]",
                           .words = "allowed are F32, F16 and BF16",
                           .data_bytes = 4,
                           .dtype = dtype,
                           .code = StatusCode::kUnsupported}});
  }
  ExpectTensorsRefused(
      {{"[1]", "[0,8]", "it is cut short, or damaged: the header promises 8 bytes of data, there are 4", 4},
       {"[1]", "[4,0]", "allowed is a range within the 4 bytes", 4},
       {"[1]", "[18446744073709551612,0]", "allowed is a range", 4},
       {"[1]", "[0,18446744073709551615]", "promises 18446744073709551615 bytes of data, there are 4", 4},
       {"[2]", "[0,4]", "has 4 bytes, its shape [2] and dtype F32 take 8", 4},
       {"[1]", "[0,4]", "its shape [1] and dtype F16 take 2", 4, "\"F16\""},
       // 2^62 * 4 is 0 modulo 2^64, and (2^32 + 1)^2 wraps to a small number.
       {"[4611686018427387904]", "[0,0]", "more than 2^64 - 1 bytes"},
       {"[4294967297,4294967297]", "[0,4]", "more than 2^64 - 1 bytes", 4},
       {"[18446744073709551615,0]", "[0,4]", "take 0", 4}});
  EXPECT_TRUE(
      Parsed(MakeFile(One("\"F32\"", "[18446744073709551615,18446744073709551615,0]", "[0,0]"), 0)).result.ok());
}

TEST(SafeTensors, Data_AreCoveredExactly) {
  const auto two = [](const char* first, const char* second) {
    return std::string(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":)") + first +
           R"(},"y":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}";
  };
  EXPECT_TRUE(Parsed(MakeFile(two("[4,8]", "[0,4]"), 8)).result.ok());
  ExpectRefused(MakeFile(two("[0,4]", "[4,8]"), 9), "1 bytes of data behind the last tensor");
  ExpectRefused(MakeFile(two("[0,4]", "[8,12]"), 12), "tensor 'y' begins at byte 8 of the data, allowed is 4");
  ExpectRefused(MakeFile(two("[0,4]", "[2,6]"), 6), "tensor 'y' begins at byte 2 of the data, allowed is 4");
  ExpectRefused(MakeFile(two("[0,4]", "[0,4]"), 4), "begins at byte 0 of the data, allowed is 4");
  ExpectRefused(MakeFile(two("[4,8]", "[8,12]"), 12), "tensor 'x' begins at byte 4 of the data, allowed is 0");
  ExpectRefused(MakeFile("{}", 1), "1 bytes of data behind");
  // An empty tensor lies inside another one.
  ExpectRefused(MakeFile(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                         R"("y":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})",
                         4),
                "begins at byte 2");
}

TEST(SafeTensors, Messages_CarryNothingThatATerminalActsOn) {
  const Parsed parsed(MakeFile("{\"\\u001b[2J" + std::string(1000, 'x') + "\":1}", 0));
  ASSERT_FALSE(parsed.result.ok());
  EXPECT_EQ(parsed.result.status().message().find('\x1b'), std::string::npos);
  EXPECT_LT(parsed.result.status().message().size(), 300u);
}

// Every float16 is compared with arithmetic in double, every bfloat16 with its definition.
TEST(SafeTensors, NarrowNumbers_AreConvertedExactly) {
  std::string data;
  for (uint32_t bits = 0; bits < 65536; ++bits) data += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
  for (const bool half : {true, false}) {
    const std::string header = One(half ? "\"F16\"" : "\"BF16\"", "[65536]", "[0,131072]");
    std::string file = MakeFile(header, 0) + data;
    const Parsed parsed(file);
    ASSERT_TRUE(parsed.result.ok()) << parsed.result.status().message();
    std::vector<float> values(65536);
    parsed.result->tensors()[0].CopyTo(values);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const uint32_t fraction_bits = half ? 10 : 7, exponent_bits = 15 - fraction_bits, top = (1u << exponent_bits) - 1;
      const uint32_t exponent = bits >> fraction_bits & top, fraction = bits & ((1u << fraction_bits) - 1);
      const int bias = (1 << (exponent_bits - 1)) - 1;
      EXPECT_EQ(std::signbit(values[bits]), bits >= 32768) << bits;
      if (exponent == top) {
        EXPECT_TRUE(fraction == 0 ? std::isinf(values[bits]) : std::isnan(values[bits])) << bits;
        continue;
      }
      const double significand = (exponent == 0 ? 0.0 : 1.0) + std::ldexp(fraction, -static_cast<int>(fraction_bits));
      const double expected = std::ldexp(significand, (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias);
      EXPECT_EQ(std::abs(static_cast<double>(values[bits])), expected) << bits;
    }
  }
}

TEST(SafeTensors, WhatIsWritten_IsReadBackBitForBit) {
  const TemporaryFolder folder;
  const float values[] = {0.0f, -0.0f, 1e-45f, -3.4028235e38f, 0.1f, 7.0f};
  const std::vector<TensorToWrite> tensors = {
      {.name = "z\"\xc3\xa9", .shape = {2, 2}, .values = std::span(values).first(4)},
      {.name = "a", .shape = {2}, .values = std::span(values).last(2)}};
  for (const auto& metadata : {std::map<std::string, std::string>{}, {{"k", "line\nline\"x"}}}) {
    ASSERT_TRUE(WriteSafeTensors(folder / "f", tensors, metadata).ok());
    const Result<SafeTensorsFile> f = SafeTensorsFile::Open(folder / "f");
    ASSERT_TRUE(f.ok()) << f.status().message();
    EXPECT_EQ(std::memcmp(f->Find("z\"\xc3\xa9")->bytes.data(), values, 16), 0);
    EXPECT_EQ(std::memcmp(f->Find("a")->bytes.data(), values + 4, 8), 0);
    EXPECT_EQ(f->metadata().size(), metadata.size());
    for (const auto& [key, text] : metadata) EXPECT_EQ(f->metadata().at(key), text);
    uint64_t length = 0;
    std::memcpy(&length, ReadBytes(folder / "f").data(), 8);
    EXPECT_EQ(length % 8, 0u);
  }
  EXPECT_EQ(folder.NumFiles(), 1u);
}

TEST(SafeTensors, WrongContents_WriteNothing) {
  const TemporaryFolder folder;
  const float values[] = {1, 2};
  const TensorToWrite good{.name = "t", .shape = {2}, .values = values},
      wrong_shape{.name = "t", .shape = {3}, .values = values};
  const TensorToWrite long_name{.name = std::string(2000, 'n'), .shape = {2}, .values = values};
  const std::vector<TensorToWrite> twice = {good, good};
  for (const auto& tensors : {std::span(&wrong_shape, 1), std::span(&long_name, 1), std::span(twice)}) {
    EXPECT_EQ(WriteSafeTensors(folder / "f", tensors, {}).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(WriteSafeTensors(folder / "f", std::span(&good, 1), {{"k", std::string(kMaxHeaderBytes, 'x')}}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafeTensors(folder / "nowhere/f", std::span(&good, 1), {}).code(), StatusCode::kIo);
  EXPECT_EQ(folder.NumFiles(), 0u);
}

// Expects either an error with a sentence, or tensors within the file that cover it.
TEST(SafeTensors, RandomDamage_IsRefusedOrSound) {
  constexpr uint32_t kSeed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const std::string good = MakeFile(kGood, 32), likely = "\"\"{}[]:,,0123456789-e.\\ \xff\xc3";
  int sound = 0, refused = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string bad = good;
    for (uint32_t n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % bad.size();
      const char c = random() % 8 == 0 ? static_cast<char>(random()) : likely[random() % likely.size()];
      switch (random() % 4) {
        case 0:
          bad.insert(at, 1, c);
          break;
        case 1:
          bad.erase(at, 1 + random() % 3);
          break;
        default:
          bad[at] = c;
      }
      if (bad.size() < 8) bad.resize(8);
    }
    // In half of the rounds the length of the header still fits, so that the first check does not always find the
    // damage.
    if (const uint64_t length = bad.size() - 40; round % 2 == 0 && bad.size() > 42) std::memcpy(bad.data(), &length, 8);
    const Parsed parsed(bad);
    ++(parsed.result.ok() ? sound : refused);
    if (!parsed.result.ok()) {
      EXPECT_EQ(parsed.result.status().message().rfind("f: ", 0), 0u);
      continue;
    }
    size_t covered = 0;
    for (const SafeTensor& t : parsed.result->tensors()) {
      covered += t.bytes.size();
      std::vector<float> values(t.num_elements());
      t.CopyTo(values);
    }
    uint64_t length = 0;
    std::memcpy(&length, bad.data(), 8);
    EXPECT_EQ(covered, bad.size() - 8 - length);
  }
  EXPECT_GT(sound, 500);
  EXPECT_GT(refused, 5000);
}

UniformArchitecture Small() {
  return {.num_items = 5,
          .max_length = 4,
          .width = 4,
          .num_heads = 2,
          .num_blocks = 1,
          .inner_width = 3,
          .output_table = OutputTable::kUntied,
          .output_bias = OutputBias::kTrained};
}

// Writes all tensors of an architecture with weights 1, 2, 3, ...; `change` may damage them first.
Result<SafeTensorsFile> MakeFile(const std::string& path, const Architecture& a, auto&& change) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  std::vector<float> weights(FlatSize(parameters));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i + 1);
  std::vector<TensorToWrite> tensors;
  for (const ParameterSpec& p : parameters)
    tensors.push_back({TorchName(p.name), TorchShape(p), std::span(weights).subspan(p.offset, p.size())});
  change(tensors, weights);
  const Status written = WriteSafeTensors(path, tensors, {});
  if (!written.ok()) return written;
  return SafeTensorsFile::Open(path);
}

TEST(TorchNames, EveryParameterComesBack) {
  const TemporaryFolder folder;
  for (const ReAttention re_attention : {ReAttention::kOff, ReAttention::kOn}) {
    UniformArchitecture a = Small();
    a.re_attention = re_attention;
    const auto file = MakeFile(folder / "f", a, [](auto&, auto&) {});
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_NE(file->Find("blocks.0.attention.in_proj_weight"), nullptr);
    const auto shapes = InferArchitecture("f", *file);
    ASSERT_TRUE(shapes.ok()) << shapes.status().message();
    UniformArchitecture expected = a;
    expected.num_heads = 1;  // no shape tells it
    EXPECT_EQ(*shapes, expected);
    const auto weights = ReadWeights("f", *file, a);
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    for (const ParameterSpec& p : ListParameters(a)) {
      for (size_t i = 0; i < p.size(); ++i)
        ASSERT_EQ((*weights)[p.offset + i], static_cast<float>(p.offset + i + 1)) << p.name;
    }
  }
}

TEST(TorchNames, WrongTensors_AreNamed) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& words, auto&& change) {
    Architecture a = Small();
    a.re_attention = ReAttention::kOn;
    const auto file = MakeFile(folder / "f", a, change);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto shapes = InferArchitecture("f", *file);
    const auto weights = ReadWeights("f", *file, a);
    ASSERT_FALSE(shapes.ok() && weights.ok()) << words;
    const std::string message = !shapes.ok() ? shapes.status().message() : weights.status().message();
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  refused("there is no tensor 'item_embedding.weight'", [](auto& tensors, auto&) { tensors[0].name = "x"; });
  refused("'item_embedding.weight' has the shape [20], allowed are 1 to 67108864 rows",
          [](auto& tensors, auto&) { tensors[0].shape = {20}; });
  refused("'item_embedding.weight' has the shape [4, 5], the architecture needs [5, 4]", [](auto& tensors, auto&) {
    tensors[0].shape = {4, 5};
  });
  refused("there is no tensor 'blocks.0.attention_norm.bias'", [](auto& tensors, auto&) { tensors[3].name = "x"; });
  refused("tensor 'block0.qkv.weight' belongs to nothing", [](auto& tensors, auto&) {
    tensors.push_back({"block0.qkv.weight", {0}, {}});
  });
  refused("'position_embedding.weight' holds nan at place 2, allowed are finite numbers",
          [](auto& tensors, auto& weights) {
            weights[static_cast<size_t>(tensors[1].values.data() - weights.data()) + 2] = NAN;
          });
  refused("'item_embedding.variance' holds -1 at place", [](auto& tensors, auto& weights) {
    weights[static_cast<size_t>(tensors[tensors.size() - 2].values.data() - weights.data())] = -1;
  });
}

// Shapes that no model may have are refused before anything is allocated for them.
TEST(TorchNames, EmptyTensorsOfHugeShapes_AreRefused) {
  const std::string header =
      R"({"item_embedding.weight":{"dtype":"F32","shape":[9223372036854775807,0],"data_offsets":[0,0]}})";
  const Parsed parsed(MakeFile(header, 0));
  ASSERT_TRUE(parsed.result.ok());
  EXPECT_FALSE(InferArchitecture("f", *parsed.result).ok());
}

}  // namespace
}  // namespace wisp::convert::safetensors_test
