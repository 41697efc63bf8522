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

// A choice is a flag whose value is one of a few words. The first one is the default.
type choice struct {
	words []string
	value *string
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return "WORD" }

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("must be %s", anyOf(c.words))
	}
	*c.value = s
	return nil
}

// anyOf lists words: "text, json or sarif".
func anyOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// addChoice defines a flag that completes its words.
func addChoice(cmd *cobra.Command, to *string, name, usage string, words ...string) {
	defineChoice(cmd.Flags(), to, name, usage, words)
	complete(cmd, name, words...)
}

func defineChoice(fs *pflag.FlagSet, to *string, name, usage string, words []string) {
	*to = words[0]
	fs.Var(choice{words, to}, name, usage+": "+anyOf(words))
}

// addFormat defines --format. The first of the formats is the default.
func addFormat(cmd *cobra.Command, to *string, formats ...string) {
	addChoice(cmd, to, "format", "`FORMAT` of the output", formats...)
}

// addPersistentFormat defines --format for a command and its subcommands.
func addPersistentFormat(cmd *cobra.Command, to *string, formats ...string) {
	defineChoice(cmd.PersistentFlags(), to, "format", "`FORMAT` of the output", formats)
	complete(cmd, "format", formats...)
}

// complete has a flag offer words.
func complete(cmd *cobra.Command, flag string, words ...string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// must panics on errors that only a wrong definition of a command causes.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// noArgs rejects arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unexpected argument %q", args[0])
	}
	return nil
}

// explainFlag rewrites an error of pflag, and suggests a flag with a similar name.
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
			cause = number.Err // without the name of a function
		}
		return usageError("invalid value %q for --%s: %w", e.GetValue(), e.GetFlag().Name, cause)
	}
	return usageError("%w", err)
}

// unknownCommand runs a command that only has subcommands: it reports that none of them is
// named. Without arguments, mete itself prints its help.
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
		return usageError("a command is required: %s", anyOf(names))
	}
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(args[0])
	switch {
	case len(near) > 0:
		nearest := cmp.Or(synonym(cmd, args[0]), spell.Nearest(args[0], near), near[0])
		return usageError("unknown command %q; did you mean '%s %s'?", args[0], cmd.CommandPath(), nearest)
	case cmd.HasParent():
		return usageError("unknown command %q: it must be %s", args[0], anyOf(names))
	}
	return usageError("unknown command %q", args[0])
}

// synonym returns the command that names word in SuggestFor, empty for none. Another command
// can be spelled like the word: lint is mete check, and not mete init.
func synonym(cmd *cobra.Command, word string) string {
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, strings.ToLower(word)) {
			return c.Name()
		}
	}
	return ""
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
