// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/visible"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0 // yes, allowed, fine
	exitNo          = 1 // no, denied, invalid
	exitUsage       = 2 // wrong usage, or unreadable input
	exitUnreachable = 3 // the server, its store or a database does not answer
	exitRefused     = 4 // the server refuses the request, for example an unknown token
)

// A failure is the error of a command with its exit code.
type failure struct {
	code   int
	err    error // nil: the command has printed its answer
	layout layout
}

// A layout is how the lines of an error are printed.
type layout uint8

const (
	headed   layout = iota // the first line is prefixed with the command
	eachLine               // every line is prefixed
	bare                   // no line is prefixed: lines begin with a file name
	usage                  // as headed, followed by a pointer to the help
)

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// fail returns err with an exit code.
func fail(code int, err error) error { return &failure{code: code, err: err} }

// failEach is fail for an error whose lines are separate errors.
func failEach(code int, err error) error { return &failure{code: code, err: err, layout: eachLine} }

// failBare is fail for an error whose lines begin with a file name.
func failBare(code int, err error) error { return &failure{code: code, err: err, layout: bare} }

// usageError reports wrong usage.
func usageError(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), layout: usage}
}

// exit ends a command that has printed its answer.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

// answered ends a command that has printed its answer, which failed with err.
func answered(err error, code int) error {
	if err != nil {
		return err
	}
	return exit(code)
}

// report prints the error of the command with this path and returns the exit code.
func report(std Streams, path string, err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: exitUsage, err: err}
	}
	if f.err == nil {
		return f.code
	}
	printError(std.Err, path, f)
	return f.code
}

// printError prints a failure of the command with this path.
func printError(w io.Writer, path string, f *failure) {
	text := visible.Lines(f.err.Error()) // a server or a file may have written a part
	command := painterOf(w).red(path + ":")
	switch f.layout {
	case bare:
		fmt.Fprintln(w, text)
	case eachLine:
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			fmt.Fprintf(w, "%s %s\n", command, line)
		}
	case usage:
		_, name, _ := strings.Cut(path, " ")
		fmt.Fprintf(w, "%s %s\nSee '%s'.\n", command, text, strings.TrimSpace("mete help "+name))
	default:
		fmt.Fprintf(w, "%s %s\n", command, text)
	}
}

// clientExit is the exit code for an error of package client.
func clientExit(err error) int {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return exitUsage
	case e.Kind == client.Unreachable, e.Kind == client.Unavailable:
		return exitUnreachable
	case e.Kind == client.Refused && e.Status != 0:
		return exitRefused
	}
	return exitUsage // --server is not a mete server, or the request cannot be sent
}

// failClient returns the error of a client with its exit code and a remedy.
func failClient(server string, err error) error { return fail(clientExit(err), explain(server, err)) }
