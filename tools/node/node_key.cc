#include "tools/node/node_key.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace wisp::node {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
struct FreeMaker {
  void operator()(EVP_PKEY_CTX* maker) const { EVP_PKEY_CTX_free(maker); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
};
using Digest = std::unique_ptr<EVP_MD_CTX, FreeDigest>;

constexpr size_t kMostKeyBytes = 16384;

std::string GetBytes(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : std::string();
}

std::string Because(const std::string& path, const char* doing) {
  return path + ": the device's key could not be " + doing + ": " + std::strerror(errno);
}

bool IsOnCurve(EVP_PKEY* key) { return key != nullptr && EVP_PKEY_base_id(key) == EVP_PKEY_EC; }

Key MakeKey() {
  EVP_PKEY* key = nullptr;
  const std::unique_ptr<EVP_PKEY_CTX, FreeMaker> maker(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr));
  if (maker == nullptr || EVP_PKEY_keygen_init(maker.get()) <= 0 ||
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker.get(), NID_X9_62_prime256v1) <= 0 ||
      EVP_PKEY_keygen(maker.get(), &key) <= 0) {
    return nullptr;
  }
  return Key(key);
}

bool WriteAll(int file, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return fsync(file) == 0;
}

void SyncFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

// Writes a whole file, or none. A key that another process wrote meanwhile stays.
bool WriteKey(const std::string& path, const std::string& pem) {
  const std::string temporary = path + ".tmp-" + std::to_string(getpid());
  unlink(temporary.c_str());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool written = WriteAll(file, pem);
  int failed = errno;
  close(file);
  const bool linked = written && (link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  if (written) failed = errno;
  unlink(temporary.c_str());
  SyncFolder(path);
  errno = failed;
  return linked;
}

// Empty, with errno, if the file cannot be read.
std::string ReadKey(const std::string& path, bool& is_private) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat known = {};
  is_private = fstat(file, &known) == 0 && S_ISREG(known.st_mode) && (known.st_mode & 077) == 0;
  std::string bytes(kMostKeyBytes, '\0');
  const ssize_t n = is_private ? read(file, bytes.data(), bytes.size()) : 0;
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  close(file);
  return bytes;
}

}  // namespace

Key OpenKey(const std::string& path, std::string& error) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    const Key made = MakeKey();
    const Bio pem(BIO_new(BIO_s_mem()));
    if (made == nullptr || pem == nullptr ||
        PEM_write_bio_PKCS8PrivateKey(pem.get(), made.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
      error = path + ": OpenSSL could not make a key";
      return nullptr;
    }
    if (!WriteKey(path, GetBytes(pem.get()))) {
      error = Because(path, "written");
      return nullptr;
    }
  }
  bool is_private = false;
  std::string pem = ReadKey(path, is_private);
  if (pem.empty() && !is_private && access(path.c_str(), R_OK) != 0) {
    error = Because(path, "read");
    return nullptr;
  }
  if (!is_private) {
    error = path + ": others than its owner can read the device's key, or it is no file; allowed is chmod 600";
    return nullptr;
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Key key(bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  OPENSSL_cleanse(pem.data(), pem.size());
  if (IsOnCurve(key.get()) && (EVP_PKEY_bits(key.get()) == 256 || EVP_PKEY_bits(key.get()) == 384)) return key;
  error = path + ": is no private key on P-256 or P-384 in PEM";
  return nullptr;
}

std::string GetPublicPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), key) == 1 ? GetBytes(bio.get()) : std::string();
}

bool Sign(EVP_PKEY* key, const void* message, size_t size, uint8_t* der, size_t capacity, size_t* length) {
  const Digest digest(EVP_MD_CTX_new());
  *length = capacity;
  return digest != nullptr && EVP_PKEY_size(key) > 0 && static_cast<size_t>(EVP_PKEY_size(key)) <= capacity &&
         EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestSign(digest.get(), der, length, static_cast<const unsigned char*>(message), size) == 1;
}

bool Verifies(const std::string& key_pem, const void* message, size_t size, const uint8_t* der, size_t length) {
  const Bio bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Key key(bio == nullptr ? nullptr : PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  const Digest digest(EVP_MD_CTX_new());
  return IsOnCurve(key.get()) && digest != nullptr &&
         EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(digest.get(), der, length, static_cast<const unsigned char*>(message), size) == 1;
}

}  // namespace wisp::node
