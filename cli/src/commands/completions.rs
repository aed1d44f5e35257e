//! `gudgeon completions`: scripts by which shells complete commands.

use std::process::ExitCode;

use clap::{Args, Command, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use crate::{failure::Failure, output};

const EXAMPLES: &str = "\
Examples:
  gudgeon completions bash > ~/.local/share/bash-completion/completions/gudgeon
  gudgeon completions zsh > \"${fpath[1]}/_gudgeon\"
  gudgeon completions fish > ~/.config/fish/completions/gudgeon.fish
  gudgeon completions powershell >> $PROFILE";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArguments {
    #[arg(value_enum)]
    shell: Supported,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub fn run(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let shell = match arguments.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
        Supported::Powershell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    let all = crate::arguments::Arguments::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut command = Command::new("gudgeon").args(all.get_arguments().cloned()).subcommands(shown);
    clap_complete::generate(shell, &mut command, "gudgeon", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
