// wisp.hpp opens the files of tests/golden/0.1 and answers what answers.txt says, as tests/golden_answers.c does in C.
//
//   golden_answers FOLDER     a copy: an opened ledger may get files of SQLite beside it
#include <wisp.hpp>

#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace api = wisp::api;

namespace {

std::string Word(std::istream& line) {
  std::string word;
  if (!(line >> word)) throw std::runtime_error("the line is too short");
  return word;
}

void Expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

void ExpectNear(std::istream& line, double seen) {
  const double told = std::stod(Word(line));
  Expect(std::abs(told - seen) <= 1e-5 * (1 + std::abs(told)), "another number");
}

void Recommend(std::istream& line, const std::string& folder, bool has_adapter) {
  wisp_open_options options = api::Init();
  const std::string path = folder + Word(line);
  const std::string adapter = has_adapter ? folder + Word(line) : std::string();
  if (has_adapter) options.adapter_path = adapter.c_str();
  api::Model model = api::Model::Open(path, options);
  std::istringstream keys(Word(line));
  std::vector<int32_t> history;
  for (std::string key; std::getline(keys, key, ',');) history.push_back(model.Find(key).value());
  for (const wisp_recommendation& best : model.Recommend(history, 7, {.allow_seen = true})) {
    Expect(model.Key(best.item) == Word(line), "another item");
    ExpectNear(line, best.score);
  }
}

void Answer(std::istream& line, const std::string& folder) {
  const std::string verb = Word(line);
  if (verb == "recommend" || verb == "adapter") {
    Recommend(line, folder, verb == "adapter");
  } else if (verb == "history") {
    const api::Log log = api::Log::Open(folder + Word(line));
    const api::Model model = api::Model::Open(folder + Word(line));
    for (const int32_t item : log.GetHistory(model, Word(line), 16)) {
      Expect(model.Key(item) == Word(line), "another item");
    }
  } else if (verb == "events") {
    const api::Log log = api::Log::Open(folder + Word(line));
    wisp_log_counts counts = api::Init();
    wisp_error error;
    Expect(wisp_log_count(log.get(), &counts, &error) == WISP_OK, error.message);
    ExpectNear(line, static_cast<double>(counts.events));
  } else if (verb == "epsilon") {
    const std::string path = folder + Word(line);
    const double delta = std::stod(Word(line));
    const std::string statement = api::Statement(path, delta, WISP_STATEMENT_JSON);
    const size_t place = statement.find("\"epsilon\":");
    Expect(place != std::string::npos, "the statement has no epsilon");
    ExpectNear(line, std::stod(statement.substr(place + 10)));
  } else {
    throw std::runtime_error("no such question");
  }
  std::string more;
  Expect(!(line >> more), "the line says more than was answered");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = std::string(argc == 2 ? argv[1] : ".") + "/";
  std::ifstream file(folder + "answers.txt");
  int answers = 0;
  for (std::string question; std::getline(file, question); ++answers) {
    try {
      std::istringstream line(question);
      Answer(line, folder);
    } catch (const std::exception& e) {
      std::cerr << "golden_answers: " << question << ": " << e.what() << "\n";
      return 1;
    }
  }
  std::cout << answers << " answers hold\n";
  return answers > 0 ? 0 : 1;
}
