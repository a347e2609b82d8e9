"""The section `terminal`: where commands run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.config.section import Section, key, mapping, section

if TYPE_CHECKING:
    # `mibyan.config.validation` resolves the annotations, when it is needed.
    from collections.abc import Mapping
    from typing import Literal

    from mibyan.config.kinds import EnvName, LooseText, OptionText, Port, Positive, Seconds, Text


class DockerSettings(Section):
    """Containers of a docker engine."""

    image: Text | None = key(None, "Image that commands run in.")
    host: Text | None = key(
        None, "Address of the engine, such as unix:///run/docker.sock; null: DOCKER_HOST, or the default."
    )
    mounts: tuple[Text, ...] = key((), "Host folders in the container, each HOST:CONTAINER or HOST:CONTAINER:ro.")
    network: Text = key("none", "Network of the container, as for docker run --network.")
    memory: LooseText | None = key(None, "Most memory, in bytes or with a unit: 512m, 2g.")
    cpus: Positive | None = key(None, "Most processors; fractions are allowed.")
    user: LooseText | None = key(None, "User in the container: UID, UID:GID or a name.")


class SshSettings(Section):
    """Another machine, through the OpenSSH client and the user's own ssh_config."""

    host: Text | None = key(None, "Host, or an alias of ssh_config.")
    port: Port = key(22, "Port.")
    user: Text | None = key(None, "User to log in as; null: as ssh_config says.")
    identity_file: Text | None = key(None, "Private key; relative to the folder of config.yaml.")
    options: Mapping[str, OptionText] = mapping({}, "Further options, as for ssh -o: {StrictHostKeyChecking: yes}.")


class SingularitySettings(Section):
    """Containers of apptainer or singularity."""

    image: Text | None = key(
        None, "Image: a SIF file or a sandbox folder (relative to the folder of config.yaml), or a URI."
    )
    binds: tuple[Text, ...] = key((), "Host paths in the container, each HOST or HOST:CONTAINER or HOST:CONTAINER:ro.")
    network: Text = key("none", "Network of the container.")


class ModalSettings(Section):
    """Sandboxes of Modal."""

    server_url: Text | None = key(None, "Address of the service; null: the SDK's.")
    image: Text | None = key(None, "Image that commands run in.")
    app: Text | None = key(None, "Name of the app that the sandboxes belong to.")


class DaytonaSettings(Section):
    """Sandboxes of Daytona."""

    api_url: Text | None = key(None, "Address of the service; null: the SDK's.")
    api_key_env: EnvName = key("DAYTONA_API_KEY", "Environment variable that holds the key.")
    image: Text | None = key(None, "Image that commands run in.")
    target: Text | None = key(None, "Region.")


class VercelSandboxSettings(Section):
    """Sandboxes of Vercel."""

    base_url: Text | None = key(None, "Address of the service; null: the SDK's.")
    token_env: EnvName = key("VERCEL_TOKEN", "Environment variable that holds the token.")
    team_id: Text | None = key(None, "Team.")
    project_id: Text | None = key(None, "Project.")
    runtime: Text | None = key(None, "Runtime, such as python3.13.")


class TerminalSettings(Section):
    """Where commands run, and how long."""

    backend: Text = key("local", "local, docker, ssh, singularity, modal, daytona, vercel_sandbox, or a plugin's.")
    cwd: Text | None = key(
        None,
        "Directory that commands start in. With the backend local a relative one is relative to the directory that "
        "Mibyan was started in; elsewhere it is a path of that machine. null: the session's.",
    )
    timeout: Seconds = key(180, "Seconds that a command may take when its call doesn't say.")
    env_passthrough: tuple[Text, ...] = key(
        (), "Names of environment variables that commands get though they look secret."
    )
    sandbox: Literal["none", "bwrap", "landlock"] = key("none", "Sandbox of the backend local.")
    sandbox_network: bool = key(False, "Whether commands in the sandbox may use the network.")  # noqa: FBT003 - a default
    docker: DockerSettings = section(DockerSettings, "The backend docker.")
    ssh: SshSettings = section(SshSettings, "The backend ssh.")
    singularity: SingularitySettings = section(SingularitySettings, "The backend singularity.")
    modal: ModalSettings = section(ModalSettings, "The backend modal.")
    daytona: DaytonaSettings = section(DaytonaSettings, "The backend daytona.")
    vercel_sandbox: VercelSandboxSettings = section(VercelSandboxSettings, "The backend vercel_sandbox.")
