#include "cli/interpreter.h"

#include <gtest/gtest.h>

namespace glovebox::cli {
namespace {

std::string first_command(const Result<Language>& language) {
  if (!language) return "error: " + language.error().text();
  std::string out;
  for (const std::string& word : language->commands.front()) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(ChooseLanguage, GoesByTheEnding) {
  struct Case {
    const char* name;
    const char* command;
  };
  for (const Case& c : {Case{"a.py", "python3"},
                        {"dir.x/b.js", "node"},
                        {"a.mjs", "node"},
                        {"a.sh", "sh"},
                        {"a.bash", "bash"},
                        {"a.rb", "ruby"},
                        {"a.pl", "perl"},
                        {"a.ts", "tsx"},
                        {"a.go", "go run"},
                        {"A.java", "java"},
                        {"a.R", "Rscript"},
                        {"a.php", "php"},
                        {"a.lua", "lua"},
                        {"A.PY", "python3"},
                        {"a.awk", "awk -f"}}) {
    EXPECT_EQ(first_command(choose_language(c.name, "x = 1\n")), c.command) << c.name;
  }
}

TEST(ChooseLanguage, PrefersTheFirstLine) {
  struct Case {
    const char* head;
    const char* command;
  };
  for (const Case& c : {Case{"#!/usr/bin/env python3\n", "python3"},
                        {"#!/bin/bash -e\nset", "bash -e"},
                        {"#! /usr/bin/perl\t-w\r\n", "perl -w"},
                        {"#!/usr/bin/env -S node --no-warnings\n", "node --no-warnings"},
                        {"#!/opt/odd/thing", "thing"}}) {
    EXPECT_EQ(first_command(choose_language("script.py", c.head)), c.command) << c.head;
  }
}

TEST(ChooseLanguage, RefusesFirstLinesThatNameNothing) {
  for (const char* head : {"#!\n", "#!   \n", "#!/usr/bin/env\n", "#!/usr/bin/env -i sh\n",
                           "#!/usr/bin/env A=b sh\n", "#!/\n", "#!..\n"}) {
    EXPECT_FALSE(choose_language("a.py", head)) << head;
  }
}

TEST(ChooseLanguage, RunsBinariesAsTheyAre) {
  const Result<Language> language = choose_language("program",
                                                    "\x7f"
                                                    "ELF\x02");
  ASSERT_TRUE(language);
  ASSERT_EQ(language->commands.size(), 1U);
  EXPECT_TRUE(language->commands.front().empty());
}

TEST(ChooseLanguage, SaysWhatToDoWhenNothingTells) {
  for (const char* name : {"README", "a.txt", "py", ".", "a."}) {
    const Result<Language> language = choose_language(name, "hello");
    ASSERT_FALSE(language) << name;
    EXPECT_NE(language.error().text().find("--lang"), std::string::npos);
  }
}

TEST(LanguageByName, KnowsNamesAndEndings) {
  EXPECT_EQ(language_by_name("Python")->commands.front().front(), "python3");
  EXPECT_EQ(language_by_name("js")->commands.front().front(), "node");
  EXPECT_FALSE(language_by_name("cobol"));
  EXPECT_FALSE(language_by_name(""));
}

}  // namespace
}  // namespace glovebox::cli
