// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/internal/clientaddr"
)

// Numbers of rows that [Reader.List] returns.
const (
	DefaultList = 50
	MaxList     = 10_000
)

// A Query says which rows are meant. The zero Query means all.
type Query struct {
	// Since and Until bound the time of the first denial of a row, Until not
	// included. The zero time is no bound.
	Since, Until time.Time

	// Rule is the name of the rule, and Reason why it denied: "token_bucket_exceeded".
	Rule, Reason string

	// Key and User are those that were denied, as they are or as they are stored.
	Key, User string

	// Network is the client's address, or a network of clients. Where addresses are
	// stored as networks, those count that it is in.
	Network netip.Prefix

	// Endpoint is how the endpoint begins: "GET /v1/", or "/v1/" with whatever method.
	// There is no index for it: give it less time to look through.
	Endpoint string

	// Mode says whether rows of rules in shadow count.
	Mode Mode

	// After has List go on behind a row that it has returned. The zero Place is the
	// newest row's.
	After Place

	// Limit bounds the rows that List returns, and the groups of each part of a
	// summary: 0 is [DefaultList], [MaxList] the most.
	Limit int
}

// A Mode says which rows are meant by whether their rule was in shadow.
type Mode int

// All are both kinds of rows.
const (
	All      Mode = iota
	Enforced      // what was denied
	InShadow      // what was let through, as the rule is in shadow
)

// A Place is where a row stands in a list: [Violation.Place] has it.
type Place struct {
	At time.Time
	ID int64
}

// limit is how many are asked for.
func (q Query) limit(def int) (int, error) {
	switch {
	case q.Limit == 0:
		return def, nil
	case q.Limit < 0 || q.Limit > MaxList:
		return 0, fmt.Errorf("limit %d: must be between 1 and %d, or 0", q.Limit, MaxList)
	}
	return q.Limit, nil
}

// terms gathers what holds of rows, and the arguments of a statement with it.
type terms struct {
	all  []string
	args []any
}

// add adds a term with a %s for each of its values.
func (t *terms) add(format string, values ...any) {
	places := make([]any, len(values))
	for i := range values {
		places[i] = fmt.Sprintf("$%d", len(t.args)+i) // the first argument is no value
	}
	t.all, t.args = append(t.all, fmt.Sprintf(format, places...)), append(t.args, values...)
}

// where returns the clause that a query comes to, and the arguments of a statement
// with it.
func (r *Reader) where(q Query) (clause string, args []any) {
	t := terms{args: []any{pgx.QueryExecModeExec}}
	if !q.Since.IsZero() {
		t.add("requested_at OPERATOR(pg_catalog.>=) %s::pg_catalog.timestamptz", q.Since)
	}
	if !q.Until.IsZero() {
		t.add("requested_at OPERATOR(pg_catalog.<) %s::pg_catalog.timestamptz", q.Until)
	}
	if q.Rule != "" {
		t.add("rule_name OPERATOR(pg_catalog.=) %s::pg_catalog.text", clean(q.Rule, maxRule))
	}
	if q.Reason != "" {
		t.add("reason OPERATOR(pg_catalog.=) %s::pg_catalog.text", clean(q.Reason, maxReason))
	}
	if q.Key != "" {
		t.add("(bucket_key OPERATOR(pg_catalog.=) %s::pg_catalog.text OR bucket_key OPERATOR(pg_catalog.=) %s::pg_catalog.text)", clean(q.Key, maxKey), hash(r.config.Key, aKey, q.Key))
	}
	if q.User != "" {
		t.add("(user_id OPERATOR(pg_catalog.=) %s::pg_catalog.text OR user_id OPERATOR(pg_catalog.=) %s::pg_catalog.text)", clean(q.User, maxUser), hash(r.config.Key, aUser, q.User))
	}
	if q.Network.IsValid() {
		of := q.Network.Masked()
		t.add("(ip_address OPERATOR(pg_catalog.<<=) %s::pg_catalog.text::pg_catalog.inet OR ip_address OPERATOR(pg_catalog.=) %s::pg_catalog.text::pg_catalog.inet)", of.String(), clientaddr.Network(of.Addr()).String())
	}
	if q.Endpoint != "" {
		t.endpoint(q.Endpoint)
	}
	switch q.Mode {
	case Enforced:
		t.add("NOT shadow")
	case InShadow:
		t.add("shadow")
	}
	if q.After != (Place{}) {
		// The first of the two is what tells days apart that need not be looked at.
		t.add("requested_at OPERATOR(pg_catalog.<=) %s::pg_catalog.timestamptz AND (requested_at, violation_id) OPERATOR(pg_catalog.<) (%s::pg_catalog.timestamptz, %s::bigint)", q.After.At, q.After.At, q.After.ID)
	}
	if len(t.all) == 0 {
		return "", t.args
	}
	return " WHERE " + strings.Join(t.all, " AND "), t.args
}

// endpoint adds how the endpoint begins, or the path in it.
func (t *terms) endpoint(begin string) {
	of := "endpoint"
	if strings.HasPrefix(begin, "/") {
		of = "pg_catalog.substr(endpoint, pg_catalog.strpos(endpoint, ' ') OPERATOR(pg_catalog.+) 1)" // which is all of it where there is no method
	}
	// Half a character at the end would be written otherwise in a longer text: it is ASCII here.
	t.add("pg_catalog.starts_with("+of+", %s::pg_catalog.text)", clean(begin, maxEndpoint))
}
