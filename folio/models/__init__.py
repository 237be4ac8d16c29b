"""Everything that runs a model or calls a model server: Ollama, the built-in MiniLM, cross-encoders.

In: texts. Out: vectors, scores, or a chat model's words. Weights run as ONNX graphs, which are built once and cached.
May import only the root modules.
"""
