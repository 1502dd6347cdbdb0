# JupyterLab with Spark and a Java; with another extra, or none, other parts:
#   docker build -t sparkstream-nb .                           docker run --rm -p 127.0.0.1:8888:8888 sparkstream-nb
#   docker build -t sparkstream-core --build-arg EXTRA= .      docker run --rm sparkstream-core sparkstream --help
# Versions are those of constraints.txt.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS wheel
ARG SOURCE_DATE_EPOCH=315532800
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
SHELL ["/bin/bash", "-eu", "-o", "pipefail", "-c"]
ARG EXTRA=notebooks
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    wheel="$(echo /wheels/sparkstream_nb-*.whl)" \
    && python -m pip install --no-cache-dir --no-compile -c /constraints.txt "$wheel${EXTRA:+[$EXTRA]}" \
    && useradd --create-home --uid 1000 sparkstream
USER 1000
WORKDIR /home/sparkstream
# Compiled here, once, and on another kind of processor once more.
RUN python -m sparkstream_nb.engine.warm \
    && if python -c 'import pyspark' 2>/dev/null; then python -m sparkstream_nb.app.warm_spark; fi
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
