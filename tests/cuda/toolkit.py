"""Finds CUDA's compiler: the machine's, or what `tools/dev nvcc` made. Shortens the names of kernels."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = ROOT / "kernels" / "cuda"
# A copy of the sources, as tests/mutants/run makes below build, uses the compiler of the checkout that it lies in.
FOLDERS = ["/usr/local/bin", "/usr/local/cuda/bin",
           *(f"{folder}/build/nvcc/cuda/bin" for folder in [ROOT, *ROOT.parents])]
FLAGS = ["-x", "cu", "-std=c++20", "--extended-lambda", "--expt-relaxed-constexpr", "-fmad=false", "-ccbin", "g++",
         "-O3", "-I", str(ROOT)]


def find(*tools):
    """The paths of these tools of the toolkit. Ends the process as skipped if one is missing."""
    found = [shutil.which(tool) or shutil.which(tool, path=":".join(FOLDERS)) for tool in tools]
    for tool, path in zip(tools, found):
        if path is None:
            print(f"skipped: there is no {tool} here (CUDA toolkit 13, or tools/dev nvcc)")
            sys.exit(77)
    return found


def version(nvcc):
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"V([\d.]+)", said)[1]


def short_names(mangled):
    """Maps names of kernels, as nvcc or g++ writes them, to short ones that are the same for both."""
    mangled = sorted(set(mangled))
    names = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout
    return {m: tidy(name) for m, name in zip(mangled, names.split("\n"))}


def tidy(name):
    # nvcc gives a hash to what is local to a file.
    name = re.sub(r"_GLOBAL__N__[0-9a-f]+_\d+_(\w+?)_cc_[0-9a-f]{8}(?=::|\d)", r"(\1)", name)
    name = re.sub(r"wisp::kernels::(cuda::)?|\(anonymous namespace\)::", "", name)
    # Names a function of an op like "CallForEach<Scale#1>".
    name = re.sub(r"\([^()]*\)::\{lambda\([^)]*\)#(\d+)\}", r"#\1", name)
    name = re.sub(r"^(void )?(CallForEach|SumParts)<(ForEachElement<)?(.*?#\d|.*?)>.*$", r"\2<\4>", name)
    return re.sub(r"^void ", "", name)
