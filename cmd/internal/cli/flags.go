// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/internal/spell"
)

// A choice is a flag with a fixed set of values. The first value is the default.
type choice struct {
	words []string
	value *string
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return "WORD" }

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("must be %s", joinWords(c.words))
	}
	*c.value = s
	return nil
}

// joinWords returns a list such as "text, json or sarif".
func joinWords(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func addChoice(cmd *cobra.Command, to *string, name, usage string, words ...string) {
	defineChoice(cmd.Flags(), to, name, usage, words)
	completeWords(cmd, name, words...)
}

func defineChoice(fs *pflag.FlagSet, to *string, name, usage string, words []string) {
	*to = words[0]
	fs.Var(choice{words, to}, name, usage+": "+joinWords(words))
}

// addFormat defines --format. The first format is the default.
func addFormat(cmd *cobra.Command, to *string, formats ...string) {
	addChoice(cmd, to, "format", "`FORMAT` of the output", formats...)
}

func addPersistentFormat(cmd *cobra.Command, to *string, formats ...string) {
	defineChoice(cmd.PersistentFlags(), to, "format", "`FORMAT` of the output", formats)
	completeWords(cmd, "format", formats...)
}

// completeWords makes a shell complete a flag with words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// must panics on an error that only an invalid command definition causes.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unexpected argument %q", args[0])
	}
	return nil
}

// explainFlag rewrites an error of pflag and suggests a flag with a similar name.
func explainFlag(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			return usageError("unknown flag -%s", name)
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := spell.Nearest(name, known); near != "" {
			return usageError("unknown flag --%s; did you mean --%s?", name, near)
		}
		return usageError("unknown flag --%s", name)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError("no value for --%s", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cause := e.Unwrap()
		if number, ok := errors.AsType[*strconv.NumError](cause); ok {
			cause = number.Err // drop the name of the strconv function
		}
		return usageError("invalid value %q for --%s: %w", e.GetValue(), e.GetFlag().Name, cause)
	}
	return usageError("%w", err)
}

// unknownCommand handles a command that only has subcommands. It prints the help of mete if there are no
// arguments, and otherwise reports an unknown subcommand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Runnable() {
			names = append(names, c.Name())
		}
	}
	if len(args) == 0 {
		if !cmd.HasParent() {
			return cmd.Help()
		}
		return usageError("a command is required: %s", joinWords(names))
	}
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(args[0])
	switch {
	case len(near) > 0:
		nearest := cmp.Or(findSynonym(cmd, args[0]), spell.Nearest(args[0], near), near[0])
		return usageError("unknown command %q; did you mean '%s %s'?", args[0], cmd.CommandPath(), nearest)
	case cmd.HasParent():
		return usageError("unknown command %q: it must be %s", args[0], joinWords(names))
	}
	return usageError("unknown command %q", args[0])
}

// findSynonym returns the command that lists word in SuggestFor, or "". It takes precedence over similar
// spellings: "lint" means mete check and not mete init.
func findSynonym(cmd *cobra.Command, word string) string {
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, strings.ToLower(word)) {
			return c.Name()
		}
	}
	return ""
}

func writeJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
