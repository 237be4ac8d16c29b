"""Everything that computes with weights or asks a model server: Ollama, the built-in MiniLM, cross-encoders.

In: texts. Out: vectors, scores, or a chat model's words. Weights run as ONNX graphs, made once and kept.
May import the root modules alone.
"""
