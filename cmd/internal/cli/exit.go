// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/visible"
)

// Exit codes, shared by all commands.
const (
	exitOK          = 0 // success, or the request is allowed
	exitNo          = 1 // the request is denied, or the input is invalid
	exitUsage       = 2 // wrong usage, or unreadable input
	exitUnreachable = 3 // the server, its store or a database does not answer
	exitRefused     = 4 // the server rejects the request, for example its token
)

// A failure is an error with the exit code of the command.
type failure struct {
	code   int
	err    error // nil if the command has already printed its output
	layout layout
}

// A layout selects how printError formats the lines of an error.
type layout uint8

const (
	headed   layout = iota // prefix the first line with the command
	eachLine               // prefix every line
	bare                   // no prefix, because lines begin with a file name
	usage                  // like headed, then point to the help
)

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func fail(code int, err error) error { return &failure{code: code, err: err} }

// failEach is like fail for an error with one error per line.
func failEach(code int, err error) error { return &failure{code: code, err: err, layout: eachLine} }

// failBare is like fail for an error with lines that begin with a file name.
func failBare(code int, err error) error { return &failure{code: code, err: err, layout: bare} }

func usageError(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), layout: usage}
}

func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

// exitAfterOutput ends a command that has printed its output unless writing failed with err.
func exitAfterOutput(err error, code int) error {
	if err != nil {
		return err
	}
	return exitWith(code)
}

// report prints the error of the command named path and returns its exit code.
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

func printError(w io.Writer, path string, f *failure) {
	text := visible.Lines(f.err.Error()) // a server or a file may have supplied part of the text
	command := newPainter(w).red(path + ":")
	switch f.layout {
	case bare:
		fmt.Fprintln(w, text)
	case eachLine:
		if mistakes, ok := errors.AsType[config.Errors](f.err); ok {
			printSettingsErrors(w, command, mistakes)
			break
		}
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

func clientExit(err error) int {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return exitUsage
	case e.Kind == client.KindUnreachable, e.Kind == client.KindUnavailable:
		return exitUnreachable
	case e.Kind == client.KindRefused && e.Status != 0:
		return exitRefused
	}
	return exitUsage // --server is not a mete server, or the request cannot be sent
}

// failClient adds the exit code and a remedy to an error of package client.
func failClient(server string, err error) error { return fail(clientExit(err), explain(server, err)) }
