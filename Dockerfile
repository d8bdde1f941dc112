# TensorFlow Federated 0.87.0 exists for Linux x86_64 and CPython 3.9 to 3.11, and for
# nothing else: hence the platform and the Python.
#
#     docker build -t tff_pmc .
#     docker run --rm tff_pmc                         # the quickstart
#     docker run --rm -v "$PWD/runs:/home/member/runs" tff_pmc tff-pmc --help
FROM --platform=linux/amd64 python:3.11-slim AS system
# For `make` targets and git; the dev container (.devcontainer) ends with this stage.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 member

FROM system
# The pinned closure is a layer of its own: a change of the code leaves it alone. --no-deps,
# because TFF asks for releases that are gone (docs/dependencies.md).
COPY requirements.txt /tmp/
RUN pip install --no-cache-dir --no-deps --only-binary :all: -r /tmp/requirements.txt
COPY . /tmp/tff_pmc
RUN pip install --no-cache-dir --no-deps --no-build-isolation /tmp/tff_pmc \
    && rm -rf /tmp/tff_pmc /tmp/requirements.txt
USER member
WORKDIR /home/member
CMD ["tff-pmc", "--flagfile=quickstart.flags"]
