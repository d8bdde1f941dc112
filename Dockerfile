# TensorFlow Federated 0.87.0 exists for Linux x86_64 and CPython 3.9 to 3.11, and for
# nothing else: hence the platform and the Python.
#
#     docker build -t tff_pmc .
#     docker run --rm tff_pmc                         # the quickstart
#     mkdir -p runs                                   # must be writable for user 1000
#     docker run --rm -v "$PWD/runs:/home/member/runs" -v /my/data:/data:ro tff_pmc \
#         tff-pmc --flagfile=pmc_table4.flags --data_dir=/data
FROM --platform=linux/amd64 python:3.11-slim AS system
# For `make` targets and git; the dev container (.devcontainer) ends with this stage.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 member

FROM system AS closure
# The pinned closure is a layer of its own: a change of the code leaves it alone. --no-deps,
# because TFF asks for releases that are gone (docs/dependencies.md).
COPY requirements.txt /tmp/
RUN pip install --no-cache-dir --no-deps --only-binary :all: -r /tmp/requirements.txt

# Of this stage the wheel alone is taken, so that the checkout is in no layer of the image.
FROM closure AS wheel
COPY . /tmp/checkout
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /tmp/dist /tmp/checkout

FROM closure
COPY --from=wheel /tmp/dist /tmp/dist
RUN pip install --no-cache-dir --no-deps /tmp/dist/*.whl
USER member
WORKDIR /home/member
CMD ["tff-pmc", "--flagfile=quickstart.flags"]
