# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash completion for herschel-bpf. Commands and options are read from the program's own --help, so it never lags behind.
_herschel_bpf()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} tool=${COMP_WORDS[0]} words verb=
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		words=$("$tool" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$cur")
		return
	fi
	case ${COMP_WORDS[1]} in
	probes | plan) # these have commands of their own, with their own options
		if [ "$COMP_CWORD" = 2 ]; then
			words=$("$tool" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
			mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
			return
		fi
		verb=${COMP_WORDS[2]}
		;;
	esac
	case $prev in
	-p) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur") && return ;;
	esac
	if [[ $cur == -* ]]; then
		words=$("$tool" "${COMP_WORDS[1]}" ${verb:+"$verb"} --help 2>/dev/null | grep -oE -- '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,')
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -o filenames -F _herschel_bpf herschel-bpf
