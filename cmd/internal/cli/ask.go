// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/policy"
)

// A question is what take and peek ask a server.
type question struct {
	connection
	byKey
	format string
	client.Request
}

// parseQuestion reads the arguments of the named command. Where ok is false,
// the command is to return code.
func parseQuestion(std Streams, name string, args []string) (q question, code int, ok bool) {
	fs := newFlags(std, name)
	usage, address := "`URL` of the server", config.Default().Listen
	decides := name == "take" || name == "peek"
	if !decides {
		usage, address = "`URL` of a server's admin address", config.Default().AdminListen
	}
	q.flags(fs, usage, "http://"+address)
	if q.format = "text"; decides {
		fs.StringVar(&q.format, "format", "text", "`FORMAT` of the answer: text or json")
	}
	if name != "refund" {
		q.define(fs, name)
	}
	fs.Func("cost", "`TOKENS` asked for, such as 1 or 0.25 (default: what the policy says)", func(s string) error {
		cost, err := bucket.ParseTokens(s)
		if err == nil && cost == 0 {
			err = fmt.Errorf("a cost must be above 0")
		}
		q.Cost = float64(mete.TokensOf(cost))
		return plain(err)
	})
	if decides {
		fs.Func("max-wait", "reserve: accept to wait up to `DURATION` for the tokens, such as 2s", func(s string) (err error) {
			q.MaxWait, err = bucket.ParseDuration(s)
			return plain(err)
		})
	}
	if name == "take" {
		fs.StringVar(&q.ID, "id", "", "the same `ID` for every attempt at one request, which is charged once")
	}
	operands, code, ok := fs.parse(args)
	if !ok {
		return q, code, false
	}
	if q.format != "text" && q.format != "json" {
		return q, fs.usageError("--format must be text or json, not %q", q.format), false
	}
	if code, ok := q.check(fs, &q.server, operands, mete.Tokens(q.Cost)); !ok || q.key != "" {
		return q, code, ok
	}
	if code, ok := q.attributes(fs, operands); !ok {
		return q, code, false
	}
	if !decides && len(operands) == 0 {
		return q, fs.usageError("say whose: NAME=VALUE, such as header:x-api-key=k1"), false
	}
	return q, exitOK, true
}

// attributes reads the facts about a request.
func (q *question) attributes(fs *flagSet, operands []string) (code int, ok bool) {
	q.Attributes = map[string]string{}
	for _, operand := range operands {
		name, value, found := strings.Cut(operand, "=")
		if !found {
			return fs.usageError("%q is not NAME=VALUE, such as header:x-api-key=k1", operand), false
		}
		attribute, err := policy.ParseAttribute(name)
		if err != nil {
			return fs.usageError("%v", plain(err)), false
		}
		if _, twice := q.Attributes[attribute.String()]; twice {
			return fs.usageError("%s is given twice", attribute), false
		}
		q.Attributes[attribute.String()] = value
	}
	return exitOK, true
}

// plain drops the package from the front of an error that a person reads.
func plain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, prefix := range []string{"bucket: ", "policy: ", "client: new: ", "requesttext: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return fmt.Errorf("%s", text)
}
