"""Runs a torch module in other programs, one thread each. An opener loads an exported module, in the page cache, and
returns a function from its one input, whole numbers [1, T] of int64 (numpy), to the first row of its output (numpy)."""
import contextlib
import io
import logging
import warnings

import torch


@contextlib.contextmanager
def quiet():
    """Silences exporters, which print a lot."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
            io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def of_module(module):
    def run(numbers):
        with torch.inference_mode():
            return module(torch.from_numpy(numbers))[0].numpy()
    return run


def export_onnx(module, example, path):
    with quiet(), torch.no_grad():
        torch.onnx.export(module, (example,),
                          path,
                          input_names=["in"],
                          output_names=["out"],
                          opset_version=17,
                          dynamo=False)


def onnx_file_opener(path):
    import onnxruntime

    def opener():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda numbers: session.run(["out"], {"in": numbers})[0][0]
    return opener


def onnx_opener(module, example, path):
    import onnxruntime  # noqa: F401  needed by onnx for the export, but not here
    export_onnx(module, example, path)
    return onnx_file_opener(path)


def executorch_opener(module, example, path):
    with quiet():
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower
        from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
        from executorch.runtime import Runtime
        exported = torch.export.export(module, (example,))
        program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    with open(path, "wb") as file:
        file.write(program.buffer)
    runtime = Runtime.get()
    _unsafe_reset_threadpool(1)

    def opener():
        loaded = runtime.load_program(path)
        method = loaded.load_method("forward")

        def run(numbers, keep=loaded):  # keeps the program alive as long as its method
            return method.execute([torch.from_numpy(numbers)])[0][0].numpy()
        return run
    return opener


def litert_opener(module, example, path):
    """Converts from torch with litert-torch (formerly ai-edge-torch)."""
    with quiet():
        from ai_edge_litert.interpreter import Interpreter
        import litert_torch
        litert_torch.convert(module, (example,)).export(path)

    def opener():
        interpreter = Interpreter(model_path=path, num_threads=1)
        interpreter.allocate_tensors()
        at, to = interpreter.get_input_details()[0], interpreter.get_output_details()[0]["index"]

        def run(numbers):
            interpreter.set_tensor(at["index"], numbers.astype(at["dtype"]))
            interpreter.invoke()
            return interpreter.get_tensor(to)[0]
        return run
    return opener


def agreeing(report, what, makers, left_out, check):
    """Returns those makers by name whose product runs here and passes check(name, product), which says its time. The
    others are skipped with a sentence. `check` gives the contender, or None."""
    agreed = []
    for name, make in makers.items():
        if name in left_out:
            continue
        try:
            contender = check(name, make())
        except ImportError as error:
            report.skip(what, name, f"it is not installed ({error})")
        except Exception as error:  # exporters and compilers raise any type
            report.skip(what, name, f"it cannot run this model ({type(error).__name__}: {error})")
        else:
            agreed += [contender] if contender else []
    return agreed
