//! Flags over environment over file over defaults.
//!
//! clap knows flags, environment and defaults. The file takes the place of defaults: once its name is known,
//! what it says becomes the default of the argument of that name, and the command line is read once more. So
//! a value from the file is parsed and checked by the very argument that a flag would be, and there is one
//! list of settings.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, CommandFactory, FromArgMatches};
use thiserror::Error;

use crate::config::file::{File, FileValue};
use crate::config::nats_access::{ENVIRONMENT_SECRETS, EnvironmentSecret};
use crate::config::{ConfigError, ServeArgs};

/// The argument that names the file.
const FILE: &str = "config";

/// Why the command line cannot be run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Wrong arguments, or a request for help; clap's error prints itself.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    Flag(String),
    Environment(String),
    File { path: PathBuf, line: usize },
    Default,
}

/// One setting: its name and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key in the file; the variable of an environment-only secret.
    pub key: String,
    pub help: String,
    /// Which part of it is not shown.
    pub secret: Option<Secrecy>,
    /// Empty for a setting that has no value.
    pub values: Vec<String>,
    /// Its default; empty for none.
    pub defaults: Vec<String>,
    /// May have several values.
    pub several: bool,
    /// The kind of file that its value is the path of, if it is a path.
    pub path: Option<NamedPath>,
    /// Under which heading help lists it.
    pub group: Option<String>,
    pub origin: SettingOrigin,
}

/// Which part of a setting is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// All of it.
    Whole,
    /// Of URLs, what is before the @.
    InUrls,
}

/// The kind of file that a setting's value is the path of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPath {
    File,
    /// A file that nobody else should read.
    SecretFile,
    /// A file of bearer tokens.
    TokensFile,
    Directory,
}

/// All settings of the subcommand that was asked for.
#[derive(Debug)]
pub struct Settings {
    pub all: Vec<Setting>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// The words of the command line behind the program's name, as they were given.
pub fn given_words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Reads the process's command line, the environment, and the file that they name.
///
/// # Errors
/// When one of these is not right.
pub fn load<C: CommandFactory + FromArgMatches>() -> Result<(C, Settings), LoadError> {
    load_from(std::env::args_os())
}

/// The same with other arguments, of which the first is the program.
pub fn load_from<C>(arguments: impl IntoIterator<Item = OsString>) -> Result<(C, Settings), LoadError>
where
    C: CommandFactory + FromArgMatches,
{
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = C::command();
    let mut matches = command
        .try_get_matches_from_mut(&arguments)
        .map_err(|error| reword(error, &mut command, &arguments))?;
    let file = file_named(&matches).map(File::read).transpose()?;
    let path = path_of(&matches);
    if let Some(file) = &file {
        file.check_keys(&keys(&command))?;
        command = with_defaults(C::command(), &path, file)?;
        // The arguments were valid without the file, so the error is in the file.
        matches = command
            .try_get_matches_from_mut(&arguments)
            .map_err(|error| attribute_to_file(file, &command, &path, &error))?;
    }
    let all = settings(&command, &C::command(), &matches, file.as_ref());
    let parsed = C::from_arg_matches(&matches)?;
    Ok((parsed, Settings { all, file: file.map(|file| file.path) }))
}

/// Every setting of the service, with its default.
pub fn default_settings() -> Vec<Setting> {
    let command =
        ServeArgs::augment_args(Command::new("serve")).mut_args(|arg| arg.env(None::<&'static str>));
    let with_variables = ServeArgs::augment_args(Command::new("serve"));
    let matches = command.clone().get_matches_from(["serve"]);
    let matches = &matches;
    let arguments = with_variables.get_arguments().filter(|arg| is_setting(arg));
    arguments.map(|arg| setting(arg, arg, matches, None)).collect()
}

/// Whether an argument is a setting: something that can be set for all runs.
fn is_setting(arg: &Arg) -> bool {
    arg.get_env().is_some() && arg.get_id() != FILE
}

/// The names of the subcommands that were asked for, outermost first.
fn path_of(mut matches: &ArgMatches) -> Vec<String> {
    let mut path = Vec::new();
    while let Some((name, inner)) = matches.subcommand() {
        path.push(name.to_owned());
        matches = inner;
    }
    path
}

fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

fn subcommand<'a>(mut command: &'a Command, path: &[String]) -> &'a Command {
    for name in path {
        command = command.find_subcommand(name).expect("clap found the subcommand before");
    }
    command
}

fn file_named(matches: &ArgMatches) -> Option<&Path> {
    innermost(matches).try_get_one::<PathBuf>(FILE).ok().flatten().map(PathBuf::as_path)
}

/// Every key that a file may have, each with its variable: one file serves all subcommands.
fn keys(command: &Command) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        for arg in command.get_arguments().filter(|arg| is_setting(arg)) {
            let variable = arg.get_env().unwrap_or_default().to_string_lossy().into_owned();
            keys.insert(arg.get_id().to_string(), variable);
        }
    }
    keys
}

fn with_defaults(command: Command, path: &[String], file: &File) -> Result<Command, ConfigError> {
    if let Some((name, rest)) = path.split_first() {
        let mut result = Ok(());
        let command = command.mut_subcommand(name, |inner| match with_defaults(inner, rest, file) {
            Ok(inner) => inner,
            Err(error) => {
                result = Err(error);
                Command::new(name.clone())
            }
        });
        return result.map(|()| command);
    }
    let ids: Vec<_> =
        command.get_arguments().filter(|arg| is_setting(arg)).map(|arg| arg.get_id().to_string()).collect();
    let mut command = command;
    for id in ids {
        let Some(value) = file.values.get(&id) else { continue };
        let words = match &value.words {
            FileValue::One(word) => std::slice::from_ref(word),
            FileValue::Several(words) => words.as_slice(),
        };
        let mut several = false;
        command = command.mut_arg(&id, |arg| {
            several = takes_several(&arg);
            arg.default_values(words.to_vec())
        });
        if matches!(value.words, FileValue::Several(_)) && !several {
            return Err(file.wrong_value(&id, "one value is expected, not an array".to_owned()));
        }
    }
    Ok(command)
}

fn takes_several(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Rewords an invalid value's error for operators. If it is the environment's, names the variable.
fn reword(error: clap::Error, command: &mut Command, arguments: &[OsString]) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(tip) = text(ContextKind::InvalidArg).and_then(|given| tip(&given, arguments))
    {
        let given = text(ContextKind::InvalidArg).unwrap_or_default();
        return asked(command, arguments)
            .error(error.kind(), format!("unexpected argument '{given}' found\n\n  tip: {tip}"));
    }
    let reason = std::error::Error::source(&error).map(ToString::to_string);
    let (Some(value), Some(argument)) = (text(ContextKind::InvalidValue), text(ContextKind::InvalidArg))
    else {
        return error;
    };
    let words = reason.as_deref().map(explain_parse_error);
    if let Some((variable, is_secret)) = variable_of(command, &argument, &value, arguments) {
        let value = if is_secret { String::new() } else { format!(" '{value}'") };
        let known = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => Some(format!("it must be one of: {}", known.join(", "))),
            _ => None,
        };
        let words = words.or(known).map(|words| format!(": {words}")).unwrap_or_default();
        let told = format!("the environment variable {variable} has an invalid value{value}{words}");
        return asked(command, arguments).error(error.kind(), told);
    }
    match words {
        Some(words) if reason.as_ref() != Some(&words) => {
            let told = format!("invalid value '{value}' for '{argument}': {words}");
            asked(command, arguments).error(error.kind(), told)
        }
        _ => error,
    }
}

/// The subcommand that was asked for, whose usage is printed with an error.
fn asked<'a>(command: &'a mut Command, arguments: &[OsString]) -> &'a mut Command {
    let mut asked = command;
    for word in arguments.iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        if asked.find_subcommand(word).is_none() {
            break;
        }
        asked = asked.find_subcommand_mut(word).expect("it was found");
    }
    asked
}

/// What was probably meant by an argument that there is not.
fn tip(given: &str, arguments: &[OsString]) -> Option<String> {
    let subcommand = arguments.get(1)?.to_str()?;
    if given.split('=').next() == Some("--port") && subcommand == "serve" {
        return Some("the address has the port: --listen 127.0.0.1:8080".to_owned());
    }
    if given.starts_with('-') {
        return None;
    }
    match subcommand {
        "verify" | "rebuild" | "rejects" | "serve" => {
            Some(format!("to name the data directory, use '--data-dir {given}'"))
        }
        "restore" => Some(format!("to name the snapshot, use '--from {given}'")),
        "snapshot" => Some(format!("to name the directory to write, use '--to {given}'")),
        "export" => Some(format!("to name the board, use '--board {given}'")),
        _ => None,
    }
}

/// The variable that an argument's refused value is from, if no flag has it, and whether it holds a secret.
fn variable_of(
    command: &Command,
    argument: &str,
    value: &str,
    arguments: &[OsString],
) -> Option<(String, bool)> {
    let flag = argument.split([' ', '=', '[']).next().filter(|flag| flag.starts_with("--"))?;
    let is_flag = |given: &OsString| {
        let given = given.to_string_lossy();
        given.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if arguments.iter().any(is_flag) {
        return None;
    }
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let mut named = command.get_arguments().filter(|arg| arg.get_long() == flag.strip_prefix("--"));
        let from = named.find(|arg| arg.get_env().and_then(std::env::var_os).is_some_and(|is| is == value));
        if let Some(arg) = from {
            let variable = arg.get_env()?.to_string_lossy().into_owned();
            return Some((variable, arg.is_hide_env_values_set()));
        }
    }
    None
}

/// A number parser's error, in words for operators.
fn explain_parse_error(reason: &str) -> String {
    let words = match reason {
        "invalid digit found in string" => "a whole number is expected, digits only",
        "cannot parse integer from empty string" | "cannot parse float from empty string" => {
            "the value is empty; a number is expected"
        }
        "invalid float literal" => "a number such as 0.5 is expected",
        "provided string was not `true` or `false`" | "value was not a boolean" => {
            "true or false is expected"
        }
        reason if reason.starts_with("number too ") => "the number is too far from zero",
        // 70000 is not in 0..=65535
        reason => {
            let bounds = reason.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
            let Some((least, most)) = bounds else { return reason.to_owned() };
            // Where there is no bound, clap names the greatest number that there is.
            return match most.strip_prefix('=') {
                Some(most) => format!("it must be {least} to {most}"),
                None => format!("it must be {least} or more"),
            };
        }
    };
    words.to_owned()
}

/// Turns clap's error about an argument's default into one about the file.
fn attribute_to_file(file: &File, command: &Command, path: &[String], error: &clap::Error) -> ConfigError {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg).unwrap_or_default();
    let flag = flag.split_whitespace().next().unwrap_or_default().trim_start_matches("--");
    let flag = flag.split(['=', '[']).next().unwrap_or_default();
    let mut arguments = subcommand(command, path).get_arguments();
    let arg = arguments.find(|arg| arg.get_long() == Some(flag));
    let is_secret = arg.is_some_and(Arg::is_hide_env_values_set);
    let id = arg.map(|arg| arg.get_id().to_string());
    let value = text(ContextKind::InvalidValue).map(|value| format!("{value:?} is not valid"));
    let reason = std::error::Error::source(error).map(|reason| explain_parse_error(&reason.to_string()));
    let problem = match (value, reason) {
        _ if is_secret => "its value is not valid".to_owned(),
        (Some(value), Some(reason)) => format!("{value}: {reason}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => error.to_string(),
    };
    file.wrong_value(&id.unwrap_or_default(), problem)
}

/// `built_in`: the command with its built-in defaults, without the file's.
fn settings(
    command: &Command,
    built_in: &Command,
    matches: &ArgMatches,
    file: Option<&File>,
) -> Vec<Setting> {
    let path = path_of(matches);
    let matches = innermost(matches);
    let built_in: BTreeMap<_, _> =
        subcommand(built_in, &path).get_arguments().map(|arg| (arg.get_id().as_str(), arg)).collect();
    let arguments = subcommand(command, &path).get_arguments().filter(|arg| is_setting(arg));
    let with_built_in = arguments.filter_map(|arg| Some((arg, *built_in.get(arg.get_id().as_str())?)));
    let settings = with_built_in.flat_map(|(arg, built_in)| {
        let setting = setting(arg, built_in, matches, file);
        let secret = ENVIRONMENT_SECRETS.iter().find(|secret| secret.listed_after == setting.key);
        let secret = secret.map(|secret| environment_secret(secret, setting.group.clone()));
        std::iter::once(setting).chain(secret)
    });
    settings.collect()
}

fn environment_secret(secret: &EnvironmentSecret, group: Option<String>) -> Setting {
    // An empty variable is none, as it is where the secret is used.
    let value = std::env::var(secret.variable).ok().filter(|value| !value.is_empty());
    let origin = match value {
        Some(_) => SettingOrigin::Environment(secret.variable.to_owned()),
        None => SettingOrigin::Default,
    };
    Setting {
        key: secret.variable.to_owned(),
        help: secret.help.to_owned(),
        secret: Some(Secrecy::Whole),
        values: value.into_iter().collect(),
        defaults: Vec::new(),
        several: false,
        path: None,
        group,
        origin,
    }
}

fn setting(arg: &Arg, built_in: &Arg, matches: &ArgMatches, file: Option<&File>) -> Setting {
    let key = arg.get_id().to_string();
    let lossy = |text: &OsStr| text.to_string_lossy().into_owned();
    let values = matches.get_raw(&key).into_iter().flatten().map(lossy).collect();
    let defaults = built_in.get_default_values().iter().map(|text| lossy(text)).collect();
    let value_name = arg.get_value_names().and_then(<[_]>::first).map(clap::builder::Str::as_str);
    let path = match value_name {
        Some("FILE") => Some(NamedPath::File),
        Some("SECRET_FILE") => Some(NamedPath::SecretFile),
        Some("TOKENS_FILE") => Some(NamedPath::TokensFile),
        Some("DIR") => Some(NamedPath::Directory),
        _ => None,
    };
    let group = arg.get_help_heading().map(str::to_owned);
    let in_file = file.and_then(|file| Some((file, file.values.get(&key)?)));
    let origin = match (matches.value_source(&key), in_file) {
        (Some(ValueSource::CommandLine), _) => {
            SettingOrigin::Flag(format!("--{}", arg.get_long().unwrap_or_default()))
        }
        (Some(ValueSource::EnvVariable), _) => {
            SettingOrigin::Environment(arg.get_env().map(lossy).unwrap_or_default())
        }
        (_, Some((file, value))) => SettingOrigin::File { path: file.path.clone(), line: value.line },
        _ => SettingOrigin::Default,
    };
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let secrecy = if value_name == Some("URL") { Secrecy::InUrls } else { Secrecy::Whole };
    let secret = arg.is_hide_env_values_set().then_some(secrecy);
    Setting { key, help, secret, values, defaults, several: takes_several(arg), path, group, origin }
}
