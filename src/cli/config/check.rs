//! Whether what settings name on the disk can be used. Changes nothing there.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::config::{Names, Settings};

/// What cannot be used, one line each.
pub fn problems(settings: &Settings) -> Vec<String> {
    let mut problems = Vec::new();
    for setting in &settings.all {
        let Some(names) = setting.names else { continue };
        for value in &setting.values {
            let path = Path::new(value);
            let problem = match names {
                Names::File => file(path),
                Names::Directory => directory(path),
            };
            problems.extend(problem.map(|problem| format!("{} = {value}: {problem}", setting.key)));
        }
    }
    problems
}

fn file(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("it is a directory, and a file is expected".to_owned()),
        Ok(_) => access(path, Access::READ_OK).err().map(|error| format!("it cannot be read: {error}")),
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// A directory that is there must be writable; else the nearest one above it that is there.
fn directory(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Some("it is a file, and a directory is expected".to_owned()),
        Ok(_) => access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .err()
            .map(|error| format!("it cannot be written to: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            directory(above).map(|problem| format!("it cannot be created in {}: {problem}", above.display()))
        }
        Err(error) => Some(format!("it cannot be looked at: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_or_can_be_made_is_no_problem() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path().join("file");
        std::fs::write(&here, "").expect("it can be written");
        assert_eq!(directory(folder.path()), None);
        assert_eq!(directory(&folder.path().join("a/b/c")), None);
        assert!(!folder.path().join("a").exists(), "nothing is created");
        assert_eq!(file(&here), None);
        let told = directory(&here.join("below")).expect("a file has nothing below it");
        assert!(told.contains("it is a file") || told.contains("cannot be looked at"), "{told}");
        assert_eq!(file(folder.path()).as_deref(), Some("it is a directory, and a file is expected"));
        assert!(file(&folder.path().join("none")).is_some());
    }
}
