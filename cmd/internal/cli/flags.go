// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// A flagSet parses one command's arguments. Flags may stand before, between
// and after the others; "--" ends them.
type flagSet struct {
	*flag.FlagSet
	std Streams
}

// newFlags returns the empty flag set of the named command.
func newFlags(std Streams, name string) *flagSet {
	fs := &flagSet{flag.NewFlagSet(name, flag.ContinueOnError), std}
	fs.SetOutput(io.Discard) // we speak for ourselves
	return fs
}

// parse returns the arguments that are not flags. Where ok is false, help or
// an error has been printed and the command is to return code.
func (fs *flagSet) parse(args []string) (operands []string, code int, ok bool) {
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprint(fs.std.Out, fs.help())
			return nil, exitOK, false
		case err != nil:
			return nil, fs.usageError("%s", fs.explain(err)), false
		}
		rest := fs.Args()
		if len(rest) == 0 {
			return operands, exitOK, true
		}
		if parsed := len(args) - len(rest); parsed > 0 && args[parsed-1] == "--" {
			return append(operands, rest...), exitOK, true
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
}

// usageError reports wrong usage and says where help is.
func (fs *flagSet) usageError(format string, args ...any) int {
	fmt.Fprintf(fs.std.Err, "mete %s: %s\nSee 'mete help %s'.\n", fs.Name(), fmt.Sprintf(format, args...), fs.Name())
	return exitUsage
}

// explain rewrites an error of package flag in our words, with a suggestion
// where a flag's name was misspelt.
func (fs *flagSet) explain(err error) string {
	msg := err.Error()
	name, ok := strings.CutPrefix(msg, "flag provided but not defined: -")
	if !ok {
		return strings.NewReplacer(" for flag -", " for --", " for -", " for --",
			"flag needs an argument: -", "no value for --").Replace(msg)
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if near := spell.Nearest(strings.TrimLeft(name, "-"), known); near != "" {
		return fmt.Sprintf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Sprintf("unknown flag --%s", name)
}
