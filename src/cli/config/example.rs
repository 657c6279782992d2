//! The commented configuration file that comes with ranktree, made from the list of settings.

use std::fmt::Write as _;

use crate::cli::Failure;
use crate::cli::config::print::value_toml;
use crate::config::Setting;
use crate::config::default_settings;

const HEAD: &str = "# ranktree's configuration: every setting, commented out, with its default where it \
has one.
#
#   ranktree serve --config ranktree.toml
#   ranktree config check --config ranktree.toml
#
# \
Each setting is also a flag (--data-dir) and a variable (RANKTREE_DATA_DIR). Flags override the \
environment, which
# overrides this file. `ranktree config print` shows the value of each, and where it \
comes from.
";

/// Comment lines are broken before this column.
const COLUMNS: usize = 110;

pub fn text() -> Result<String, Failure> {
    let mut out = HEAD.to_owned();
    let mut group = None;
    for setting in default_settings() {
        if setting.group != group {
            write!(out, "\n# ---- {} ----\n", setting.group.as_deref().unwrap_or("More"))?;
            group.clone_from(&setting.group);
        }
        writeln!(out)?;
        for line in wrap(&setting.help) {
            writeln!(out, "# {line}")?;
        }
        writeln!(out, "# {}", assignment(&setting))?;
    }
    Ok(out)
}

fn assignment(setting: &Setting) -> String {
    match value_toml(&setting.defaults, setting.several) {
        Some(value) => format!("{} = {value}", setting.key),
        None if setting.several => format!("{} = []", setting.key),
        None => format!("{} = \"...\"", setting.key),
    }
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("the text begins with a dash");
        if !line.is_empty() && line.len() + 1 + word.len() > COLUMNS - 2 {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}
