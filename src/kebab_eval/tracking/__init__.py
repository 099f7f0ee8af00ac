"""Where runs are kept: the local record first, MLflow second. Only this package knows MLflow.

Nothing here imports mlflow before it is needed: it takes one to two seconds.
"""
