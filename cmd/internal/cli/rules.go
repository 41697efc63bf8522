// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/store"
)

const rulesAbout = `
Shows and changes the rules in a PostgreSQL, which servers with
--policy postgres://HOST/DATABASE follow: a change is in force on all of them
within a second. It makes the tables if they are not there. What it writes must
be a policy without mistakes as a whole, or nothing is written.

  list [NAME ...]      show the rules, or those with these names
  set [NAME]           change a rule, or add it: by its name or, without one, by
                       --pattern and --plan. What no flag says stays as it is
  enable NAME ...      make rules active
  disable NAME ...     make them inactive: they stay, and are in force nowhere
  delete NAME ...      remove them
  import FILE          make rows of a policy file, JSON or YAML: rules by their
                       names, and the rest by policy; - is standard input
  export               write the active rows as a policy file

A rule's name is part of its buckets' keys: by another name it begins with full
buckets. doc/rules.md says what rows have.

The exit code is 0 also where nothing has to be changed, 1 if the rules have
mistakes, or there is no rule of that name or version, 2 on wrong usage, and 3
if the database does not answer.
`

// rulesUsage is what follows "mete rules".
const rulesUsage = "VERB --db URL [flags] [NAME ... | FILE]"

// A rulesCommand is one call of mete rules.
type rulesCommand struct {
	std      Streams
	fs       *flagSet
	verb     string
	operands []string
	given    map[string]bool // flags

	db, format               string
	pattern, scope, plan     string
	policy                   string
	rate, burst, description string
	mode, spec               string
	priority                 int
	version                  int64
	replace, dryRun          bool
}

// A rulesVerb is what mete rules can do.
type rulesVerb struct {
	flags       string // that it knows, besides --db
	least, most int    // operands
	wants       string // them
	run         func(*rulesCommand, context.Context, *rules.Source) error
}

const manyNames = 1 << 20

var rulesVerbs = map[string]rulesVerb{
	"list":    {"format", 0, manyNames, "", (*rulesCommand).list},
	"set":     {"pattern scope plan rate burst mode description spec policy priority if-version dry-run", 0, 1, "one name", (*rulesCommand).set},
	"enable":  {"if-version dry-run", 1, manyNames, "the name of a rule", (*rulesCommand).enable},
	"disable": {"if-version dry-run", 1, manyNames, "the name of a rule", (*rulesCommand).disable},
	"delete":  {"if-version dry-run", 1, manyNames, "the name of a rule", (*rulesCommand).remove},
	"import":  {"replace dry-run", 1, 1, "one policy file; - is standard input", (*rulesCommand).importFile},
	"export":  {"format", 0, 0, "", (*rulesCommand).export},
}

// An unmet wish is well-formed, and not to be had: no such rule, another version.
type unmet string

func (e unmet) Error() string { return string(e) }

// manageRules is "mete rules".
func manageRules(ctx context.Context, std Streams, args []string) int {
	c := &rulesCommand{std: std, given: map[string]bool{}}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	source, err := rules.Open(ctx, c.db, rules.Config{})
	if err == nil {
		defer source.Close()
		err = rulesVerbs[c.verb].run(c, ctx, source)
	}
	switch _, isUnmet := errors.AsType[unmet](err); {
	case err == nil:
		return exitOK
	case isUnmet, brokenPolicy(err):
		return failEach(std, exitNo, "rules", err)
	}
	text := errors.New(strings.TrimPrefix(err.Error(), "rules: ")) // the command says it already
	if errors.Is(err, store.ErrUnavailable) {
		return fail(std, exitUnreachable, "rules", text)
	}
	return fail(std, exitUsage, "rules", text)
}

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *rulesCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "rules")
	c.fs = fs
	fs.StringVar(&c.db, "db", "", "the `URL` of the PostgreSQL: postgres://HOST/DATABASE?schema=mete")
	fs.StringVar(&c.format, "format", "", "the `FORMAT` of list: text, or json; of export: yaml, or json")
	fs.StringVar(&c.pattern, "pattern", "", "set: who shares a bucket, as a `PATTERN` such as user:{user_id}, endpoint:/api/search or global")
	fs.StringVar(&c.scope, "scope", "", "set: a `WORD` for people: user, endpoint, ip, global or custom; the pattern's own if absent")
	fs.StringVar(&c.plan, "plan", "", "set: the `PLAN` whose requests count; empty is all")
	fs.StringVar(&c.rate, "rate", "", "set: tokens a second, a decimal `NUMBER`, or a rate such as 5/1m")
	fs.StringVar(&c.burst, "burst", "", "set: the most tokens that a bucket holds, a `NUMBER`")
	fs.StringVar(&c.mode, "mode", "", "set: how far the rule is in force, a `WORD`: off, shadow, a share of the keys such as 25%, or enforce")
	fs.StringVar(&c.description, "description", "", "set: a `TEXT` for people")
	fs.StringVar(&c.spec, "spec", "", "set: fields of the rule, as a `JSON` object. A null removes its field; all other fields stay")
	fs.StringVar(&c.policy, "policy", "", "set: the `NAME` of the policy that the rule is of")
	fs.IntVar(&c.priority, "priority", 0, "set: the `NUMBER` by which rules of one group are in order, lowest first")
	fs.Int64Var(&c.version, "if-version", 0, "change a rule only if it has the version `N`, as list shows it")
	fs.BoolVar(&c.replace, "replace", false, "import: make inactive what is not in the file")
	fs.BoolVar(&c.dryRun, "dry-run", false, "say what would change, and write nothing")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	fs.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	if problem := c.check(operands); problem != "" {
		return fs.usageError("%s", problem), false
	}
	return exitOK, true
}

// check says what is wrong with the arguments, nothing if nothing is.
func (c *rulesCommand) check(operands []string) string {
	var known []string
	for name := range rulesVerbs {
		known = append(known, name)
	}
	slices.Sort(known)
	if len(operands) == 0 {
		return "say what to do: " + strings.Join(known, ", ")
	}
	c.verb, c.operands = operands[0], operands[1:]
	verb, ok := rulesVerbs[c.verb]
	if !ok {
		return unknownVerb(c.verb, known)
	}
	if problem := strangeFlag(c.verb, c.given, strings.Fields("db "+verb.flags)); problem != "" {
		return problem
	}
	formats := map[string][]string{"list": {"text", "json"}, "export": {"yaml", "json"}}[c.verb]
	switch {
	case len(c.operands) < verb.least, len(c.operands) > verb.most && verb.wants != "":
		return fmt.Sprintf("%s wants %s", c.verb, verb.wants)
	case len(c.operands) > verb.most:
		return fmt.Sprintf("%s wants no argument, not %q", c.verb, c.operands[0])
	case c.db == "":
		return "no --db given"
	case c.given["format"] && !slices.Contains(formats, c.format):
		return fmt.Sprintf("unknown format %q: it must be %s", c.format, strings.Join(formats, " or "))
	case c.given["if-version"] && len(c.operands) > 1:
		return "--if-version is for one rule"
	case c.priority < -1<<31 || c.priority > 1<<31-1:
		return "--priority: must fit in 32 bits"
	case c.verb == "set" && len(c.operands) == 0 && c.pattern == "":
		return "set wants the name of a rule, or --pattern"
	case strings.Contains(c.rate, "/"):
		if _, err := bucket.ParseRate(c.rate); err != nil {
			return fmt.Sprintf("--rate: %q is neither a number of tokens a second nor a rate such as 5/1m", c.rate)
		}
	}
	return ""
}
