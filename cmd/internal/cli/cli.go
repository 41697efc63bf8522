// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of mete. Nothing below [Main] ends the
// process.
package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/metehq/mete/internal/visible"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0 // yes, allowed, fine
	exitNo          = 1 // no, denied, invalid
	exitUsage       = 2 // wrong usage, unreadable input, cannot say
	exitUnreachable = 3 // the server, or its store, does not answer
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// A command is one verb of mete. Its run parses args with newFlags, so that
// "-h" among them prints its help.
type command struct {
	name    string
	summary string // one line for the list of commands
	usage   string // what follows "mete name" in its help
	about   string // the paragraphs of its help, above its flags
	run     func(ctx context.Context, std Streams, args []string) int
}

// commands returns all commands, in the order in which the help lists them. It
// is a function because their help needs it.
func commands() []command {
	return []command{
		{"serve", "run the limiter as a server or in front of one", "[flags]", serveAbout, serve},
		{"check", "read a policy file and report every mistake in it", "[flags] FILE ...", checkAbout, check},
		{"sign", "sign a policy file, or make a key to sign with", signUsage, signAbout, sign},
		{"replay", "run recorded traffic through a policy", "--policy FILE [flags] TRACE ...\n       mete replay --compare OLD NEW [flags] TRACE ...", replayAbout, replay},
		{"take", "ask a server for tokens", "[flags] [NAME=VALUE ...]", takeAbout, take},
		{"peek", "ask a server, and spend nothing", "[flags] [NAME=VALUE ...]", peekAbout, peek},
		{"explain", "say what becomes of a request, by which rule, and why", explainUsage, explainAbout, explainRequest},
		{"refund", "give tokens back", "[flags] NAME=VALUE ...", refundAbout, refund},
		{"reset", "make the buckets of a request full", "[flags] NAME=VALUE ...", resetAbout, reset},
		{"override", "block, allow or limit somebody now, until it expires", overrideUsage, overrideAbout, manageOverrides},
		{"reload", "have a server read its policy again", "[flags]", reloadAbout, reload},
		{"rules", "show and change the rules in a database", rulesUsage, rulesAbout, manageRules},
		{"top", "show who is denied most, now", "[flags]", topAbout, showTop},
		{"violations", "show who was denied, from the database", "[list | summary] --db URL [flags]", violationsAbout, showViolations},
		{"health", "say whether a server should be sent traffic", "[flags]", healthAbout, health},
		{"version", "print the version", "", versionAbout, version},
	}
}

// Main runs the command that args name and returns its exit code.
func Main(ctx context.Context, args []string, std Streams) int {
	if len(args) == 0 {
		fmt.Fprint(std.Out, overview())
		return exitOK
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(ctx, std, rest)
	case "-version", "--version":
		name = "version"
	}
	if c, ok := lookup(name); ok {
		return c.run(ctx, std, rest)
	}
	return unknownCommand(std, name)
}

// lookup finds a command by its name.
func lookup(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// fail prints an error of the named command and returns the code.
func fail(std Streams, code int, name string, err error) int {
	fmt.Fprintf(std.Err, "mete %s: %s\n", name, visible.Lines(err.Error())) // of which others may have written a part
	return code
}
