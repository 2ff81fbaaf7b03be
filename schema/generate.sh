#!/bin/sh
# Writes the generated headers: schema/generate.sh [output folder, default schema/generated]. Debian's flatc 2.0.8.
set -eu
cd "$(dirname "$0")"
flatc --cpp --scoped-enums --gen-object-api --cpp-std c++17 --include-prefix schema/generated \
  -o "${1:-generated}" common.fbs model.fbs checkpoint.fbs tokenizer.fbs
