// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
)

// overrideUsage is what follows "mete override".
const overrideUsage = "[list | set | remove ID ...] [flags]"

const overrideAbout = `
Shows and changes the exceptions from the policy that are in force: requests
that are blocked, that pass, or that have another limit, each with a reason, an
author and an end. They hold on all servers that share the store within about a
second, and stay after a restart and a reload. They are made at the admin
address of any server.

  list                 show them, those of the policy file included
  set                  make one, or put it in the place of the one with its --id
  remove ID ...        end those

Block an abuser now, and for two hours:

  mete override set --action block --match header:x-api-key=k1 --expires 2h \
    --reason 'scrapes the catalog'

Let somebody have more than rule "free" says, until tomorrow:

  mete override set --action limit --rule free --match header:x-api-key=k1 \
    --rps 100 --burst 200 --expires 24h --reason 'moves their data'

Let all rules only watch; let everything pass, whatever is said elsewhere:

  mete override set --action shadow --expires 30m --reason 'a rule is wrong'
  mete override set --action break_glass --expires 15m --reason 'fire'

A --match that is given several times must hold altogether; the same attribute
twice is either value. Values are written as in a policy file: a prefix*, or a
network for ip:address. --key is a bucket's key as 'mete explain' shows it.

With -f FILE, set makes what the file says: one override as in a policy file, or
a list of them, in JSON or YAML; - is standard input. Where it names no author,
that is who runs the command.

The exit code is 1 if the server refuses it and says why, or has none of that
ID, 2 on wrong usage, and 3 if the server or its store does not answer.
`

// An overrideCommand is one call of mete override.
type overrideCommand struct {
	std      Streams
	fs       *flagSet
	verb     string
	operands []string
	given    map[string]bool // flags
	client   *client.Client

	connection
	format                  string
	audit                   int
	action, id, key         string
	match, rules            []string
	all                     bool
	rps, rate, burst        string
	reason, author, expires string
	file                    string

	subject string // what an answer of the server is about, in front of it
}

// overrideVerbs are what mete override can do, with the flags that each knows besides
// --server.
var overrideVerbs = map[string]struct {
	flags string
	run   func(*overrideCommand, context.Context) error
}{
	"list":   {"format audit", (*overrideCommand).list},
	"set":    {"format action match all key rule rps rate burst id reason author expires f", (*overrideCommand).set},
	"remove": {"reason author", (*overrideCommand).remove},
}

// manageOverrides is "mete override".
func manageOverrides(ctx context.Context, std Streams, args []string) int {
	c := &overrideCommand{std: std, given: map[string]bool{}}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	var err error
	if c.client, err = c.connection.client(); err != nil {
		return fail(std, exitUsage, "override", err)
	}
	if err := overrideVerbs[c.verb].run(c, ctx); err != nil {
		return c.fail(err)
	}
	return exitOK
}

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *overrideCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "override")
	c.fs = fs
	several := func(to *[]string) func(string) error {
		return func(s string) error { *to = append(*to, s); return nil }
	}
	c.flags(fs, "`URL` of a server's admin address", "http://"+config.Default().AdminListen)
	fs.StringVar(&c.format, "format", "text", "`FORMAT` of the answer: text or json")
	fs.IntVar(&c.audit, "audit", 0, "list: also show the last `N` things that were done")
	fs.StringVar(&c.action, "action", "", "set: a `WORD` for what it does: "+actionWords())
	fs.Func("match", "set: which requests it is about, as `NAME=VALUE`; may be repeated", several(&c.match))
	fs.BoolVar(&c.all, "all", false, "set --action limit: every bucket of the rule, in place of --match")
	fs.StringVar(&c.key, "key", "", "set: the requests that would spend from the bucket with this `KEY`, in place of --match")
	fs.Func("rule", "set: the `NAME` of a rule that it is about; may be repeated", several(&c.rules))
	fs.StringVar(&c.rps, "rps", "", "set --action limit: tokens a second, a decimal `NUMBER`")
	fs.StringVar(&c.rate, "rate", "", "set --action limit: in place of --rps a `RATE` such as 5/1m")
	fs.StringVar(&c.burst, "burst", "", "set --action limit: the most tokens that a bucket holds, a `NUMBER`")
	fs.StringVar(&c.id, "id", "", "set: a `NAME` for it (default: the server makes one)")
	fs.StringVar(&c.reason, "reason", "", "why, as a `TEXT` that others understand later")
	fs.StringVar(&c.author, "author", "", "`WHO` is to be asked about it (default: who runs the command)")
	fs.StringVar(&c.expires, "expires", "", "set: when it ends: a `TIME` from now such as 2h, or as 2026-01-02T15:04:05Z")
	fs.StringVar(&c.file, "f", "", "set: make what is in `FILE`")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	fs.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	if !c.given["author"] {
		c.author = runner()
	}
	if problem := c.check(operands); problem != "" {
		return fs.usageError("%s", problem), false
	}
	return exitOK, true
}

// actionWords lists the actions of overrides.
func actionWords() string {
	var words []string
	for _, kind := range policy.Actions() {
		words = append(words, string(kind.Action))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// runner is who runs the command, as far as that is known: where no shell has set
// USER, as in a container or under cron, the name of the account.
func runner() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return ""
}

// check says what is wrong with the arguments, nothing if nothing is.
func (c *overrideCommand) check(operands []string) string {
	known := []string{"list", "set", "remove"}
	if len(operands) == 0 {
		operands = known[:1]
	}
	c.verb, c.operands = operands[0], operands[1:]
	verb, ok := overrideVerbs[c.verb]
	if !ok {
		return unknownVerb(c.verb, known)
	}
	if problem := strangeFlag(c.verb, c.given, strings.Fields(connectFlags+" "+verb.flags)); problem != "" {
		return problem
	}
	for name := range c.given {
		if c.given["f"] && !slices.Contains(strings.Fields("f format "+connectFlags), name) {
			return fmt.Sprintf("-f says all of it: remove --%s", name)
		}
	}
	switch {
	case c.format != "text" && c.format != "json":
		return fmt.Sprintf("--format must be text or json, not %q", c.format)
	case c.audit < 0:
		return "--audit must not be below 0"
	case c.verb == "remove" && len(c.operands) == 0:
		return "remove wants the ID of an override: see 'mete override list'"
	case c.verb != "remove" && len(c.operands) > 0:
		return fmt.Sprintf("%s wants no argument, not %q", c.verb, c.operands[0])
	case c.verb == "list" || c.given["f"]:
		return ""
	case c.reason == "":
		return "say why: --reason TEXT"
	case c.author == "":
		return "say who is to be asked about it: --author WHO"
	case c.all && (c.action != "limit" || len(c.match) > 0 || c.key != ""):
		return "--all is for --action limit, and in place of --match and --key"
	case c.verb == "set" && c.action == "":
		return "say what it does: --action " + actionWords()
	case c.verb == "set" && c.action == "limit" && c.rps == "" && c.rate == "":
		return "say the limit: --rps NUMBER or --rate RATE, and perhaps --burst"
	case c.verb == "set" && c.expires == "":
		return "say when it ends: --expires 2h"
	}
	return ""
}

// fail prints an error, with all that the server has said, and returns the code.
func (c *overrideCommand) fail(err error) int {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return fail(c.std, exitUsage, "override", err)
	case e.Problem != nil && len(e.Problem.Mistakes) > 0:
		for _, m := range e.Problem.Mistakes {
			_ = fail(c.std, exitNo, "override", errors.New(visible.Text(c.subject)+mistakeText(m)))
		}
		return exitNo
	case e.Status == http.StatusNotFound, e.Status == http.StatusConflict:
		return fail(c.std, exitNo, "override", errors.New(visible.Text(c.subject+e.Problem.Detail)))
	case e.Kind == client.Unavailable:
		return fail(c.std, exitUnreachable, "override", explain(c.server, err))
	}
	return fail(c.std, exitCode(err), "override", explain(c.server, err))
}

// mistakeText is a mistake on one line.
func mistakeText(m api.Mistake) string {
	text := strings.TrimPrefix(m.Pointer+": "+m.Detail, ": ")
	if m.Hint != "" {
		text += "; " + m.Hint
	}
	return visible.Text(text)
}
