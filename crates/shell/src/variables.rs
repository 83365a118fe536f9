//! Variables with a meaning: which may be printed, which may be set, which steer programs.

/// Numbers the shell keeps itself.
const NUMBERS: &[&str] = &[
    "BASHPID",
    "COLUMNS",
    "EPOCHSECONDS",
    "EUID",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "LINES",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "UID",
];

/// Variables that hold no secret.
const READABLE: &[&str] = &[
    "ARCH",
    "BASH",
    "BASH_VERSION",
    "CARGO_HOME",
    "CI",
    "COLORTERM",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "DISPLAY",
    "EDITOR",
    "GOPATH",
    "GOROOT",
    "HOSTNAME",
    "HOSTTYPE",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "MACHTYPE",
    "NODE_ENV",
    "NVM_DIR",
    "OSTYPE",
    "PAGER",
    "PATH",
    "PIPESTATUS",
    "PYENV_ROOT",
    "PYTHONPATH",
    "REPLY",
    "RUSTUP_HOME",
    "RUST_LOG",
    "SHELL",
    "TERM",
    "TERM_PROGRAM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "XDG_STATE_HOME",
];

/// Variables that may be set for a program: they change how it prints, not what it does.
const SETTABLE: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TIME_STYLE",
    "TZ",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "CARGO_TERM_COLOR",
    "BLOCKSIZE",
    "BLOCK_SIZE",
    "GREP_COLORS",
    "LS_COLORS",
    "QUOTING_STYLE",
];

/// Beginnings of names that steer the shell, the loader or a well-known program.
const STEERING_PREFIXES: &[&str] = &[
    "AWS_",
    "AZURE_",
    "BASH",
    "CARGO",
    "CFLAGS",
    "CLOUDSDK_",
    "COMP_",
    "CONDA_",
    "CXX",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "ELECTRON_",
    "ESLINT_",
    "GCC_",
    "GCONV",
    "GEM_",
    "GH_",
    "GIT_",
    "GITHUB_",
    "GLIBC",
    "GNUPG",
    "GO",
    "GPG",
    "GRADLE_",
    "GREP_",
    "GTK_",
    "HELM_",
    "HIST",
    "HTTP",
    "JAVA",
    "JDK_",
    "JQ_",
    "KUBE",
    "LD_",
    "LESS",
    "LIBPATH",
    "LUA_",
    "MAKE",
    "MALLOC_",
    "MAN",
    "MAVEN_",
    "MYSQL_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "PERL",
    "PG",
    "PHP",
    "PIP_",
    "POETRY_",
    "PS",
    "PYTHON",
    "QT_",
    "R_",
    "RIPGREP_",
    "RUBY",
    "RUST",
    "SSH_",
    "SSL_",
    "SUDO_",
    "SYSTEMD_",
    "TAR_",
    "TERRAFORM",
    "TF_",
    "TMUX",
    "UV_",
    "VIM",
    "WGET",
    "XDG_",
    "YARN_",
    "_JAVA",
    "npm_",
    "BAT_",
    "FZF_",
    "CURL_",
    "VAGRANT_",
    "ZSH",
    "LS_OPTIONS",
    "UNZIP",
    "ZIPOPT",
    "GZIP",
    "XZ_",
    "ZSTD_",
    "BZIP",
];

/// Ends of names that do.
const STEERING_SUFFIXES: &[&str] = &[
    "ARGS", "BROWSER", "CMD", "COMMAND", "CONFIG", "EDITOR", "FLAGS", "HELPER", "HOME", "HOOK", "INIT",
    "LOADER", "OPEN", "OPENER", "OPTIONS", "OPTS", "PAGER", "PATH", "PLUGINS", "PRELOAD", "PROXY", "RC",
    "SHELL", "STARTUP", "WRAPPER", "proxy",
];

/// Single names that do.
const STEERING: &[&str] = &[
    "CC",
    "CDPATH",
    "DISPLAY",
    "ENV",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FUNCNEST",
    "GLOBIGNORE",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "INSIDE_EMACS",
    "LOCPATH",
    "MAIL",
    "MAILCHECK",
    "NLSPATH",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PWD",
    "RES_OPTIONS",
    "SHELLOPTS",
    "TIMEFORMAT",
    "TMOUT",
    "TMPDIR",
    "VISUAL",
    "fpath",
    "path",
    "cdpath",
    "manpath",
    "module_path",
    "argv0",
    "LOCALDOMAIN",
    "TERMINFO",
    "TERMCAP",
    "TZDIR",
    "auto_resume",
    "histchars",
    "BROWSER",
];

/// Whether the shell itself keeps a number in it.
pub(crate) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Words in names whose values are secrets more often than not.
const SECRETS: &[&str] = &[
    "AUTH", "CERT", "CONN", "COOKIE", "CRED", "DSN", "JWT", "KEY", "PASS", "PRIVATE", "PROXY", "PWD", "SALT",
    "SECRET", "SESSION", "SIGN", "TOKEN", "URI", "URL", "WEBHOOK",
];

/// Whether its value may be shown. Names in small letters are the script's own, not the environment's.
pub(crate) fn is_harmless_to_read(name: &str) -> bool {
    let own = !name.contains(|c: char| c.is_ascii_uppercase()) && !looks_secret(name);
    READABLE.contains(&name) || name.starts_with("LC_") || is_number(name) || own
}

/// Whether the name says that the value is a secret.
pub(crate) fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRETS.iter().any(|word| name.contains(word))
}

/// Whether it may be given to a program. Values with a slash are refused by the caller: a locale
/// or a terminal can be a file.
pub(crate) fn is_harmless_to_set(name: &str) -> bool {
    SETTABLE.contains(&name) || name.starts_with("LC_")
}

/// Whether setting it in the shell can change what later commands do, other than through `$NAME`.
pub(crate) fn steers(name: &str) -> bool {
    !is_harmless_to_set(name)
        && (STEERING.contains(&name)
            || STEERING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || STEERING_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}
