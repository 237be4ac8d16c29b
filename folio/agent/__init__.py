"""A question that is searched in rounds: papers first, then passages in them, each scored, and again while too little
is found. The steps are the nodes of a LangGraph graph; what answers from the passages is answer/.
"""
