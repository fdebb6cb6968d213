# docker build -t ckptsim .   docker run --rm -v "$PWD:/work" ckptsim run first.yaml
FROM python:3.12-slim AS wheel
WORKDIR /source
RUN pip install --no-cache-dir "build>=1.2"
COPY pyproject.toml README.md LICENSE ./
COPY sim ./sim
COPY docs ./docs
RUN python -m build --wheel --outdir /wheels

FROM python:3.12-slim
COPY constraints.txt /tmp/constraints.txt
# The kernel is compiled here, once, beside the package: whoever runs it needs no place to write machine code to.
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir -c /tmp/constraints.txt /wheels/*.whl \
    && python -c "from sim.plane import warm; warm()" \
    && useradd --create-home ckptsim
# Pictures need a place for the list of fonts.
ENV MPLCONFIGDIR=/tmp/matplotlib
USER ckptsim
WORKDIR /work
ENTRYPOINT ["ckptsim"]
CMD ["--help"]
