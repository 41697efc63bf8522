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

const (
	DefaultList = 50
	MaxList     = 10_000
)

// A Query selects rows. The zero Query selects all.
type Query struct {
	// Since (inclusive) and Until (exclusive) bound the time of a row's first denial. The zero time is no bound.
	Since, Until time.Time

	// Rule is a rule's name, and Reason a denial reason such as "token_bucket_exceeded".
	Rule, Reason string

	// Key and User select a denied key and user, as plain text or as stored.
	Key, User string

	// Network is a client's address, or a network of clients. If addresses are stored as networks, it selects the
	// networks that contain it.
	Network netip.Prefix

	// Endpoint is a prefix of the endpoint: "GET /v1/", or "/v1/" for any method. No index supports it: use a
	// short time range.
	Endpoint string

	// Mode selects rows by the mode of their rule.
	Mode Mode

	// After selects rows after this position in a list, to continue List. The zero Position starts at the newest
	// row.
	After Position

	// Limit bounds the rows of List, and the groups in each part of a summary. 0 is [DefaultList] or
	// [DefaultTop], and the maximum is [MaxList].
	Limit int
}

// A Mode selects rows by the mode of their rule.
type Mode int

const (
	ModeAll      Mode = iota
	ModeEnforced      // denied requests
	ModeShadow        // admitted requests that a shadow rule would have denied
)

// A Position is the position of a row in a list: see [Violation.Position].
type Position struct {
	At time.Time
	ID int64
}

func (q Query) rowLimit(def int) (int, error) {
	switch {
	case q.Limit == 0:
		return def, nil
	case q.Limit < 0 || q.Limit > MaxList:
		return 0, fmt.Errorf("limit %d: must be between 1 and %d, or 0", q.Limit, MaxList)
	}
	return q.Limit, nil
}

// conditions collects the conditions of a WHERE clause, and their arguments.
type conditions struct {
	all  []string
	args []any
}

func (t *conditions) add(format string, values ...any) {
	places := make([]any, len(values))
	for i := range values {
		places[i] = fmt.Sprintf("$%d", len(t.args)+i) // the first argument is not a value
	}
	t.all, t.args = append(t.all, fmt.Sprintf(format, places...)), append(t.args, values...)
}

// whereClause returns the WHERE clause of a query, and the arguments of the statement.
func (r *Reader) whereClause(q Query) (clause string, args []any) {
	t := conditions{args: []any{pgx.QueryExecModeExec}}
	if !q.Since.IsZero() {
		t.add("requested_at OPERATOR(pg_catalog.>=) %s::pg_catalog.timestamptz", q.Since)
	}
	if !q.Until.IsZero() {
		t.add("requested_at OPERATOR(pg_catalog.<) %s::pg_catalog.timestamptz", q.Until)
	}
	if q.Rule != "" {
		t.add("rule_name OPERATOR(pg_catalog.=) %s::pg_catalog.text", sanitize(q.Rule, maxRule))
	}
	if q.Reason != "" {
		t.add("reason OPERATOR(pg_catalog.=) %s::pg_catalog.text", sanitize(q.Reason, maxReason))
	}
	if q.Key != "" {
		t.add("(bucket_key OPERATOR(pg_catalog.=) %s::pg_catalog.text OR bucket_key OPERATOR(pg_catalog.=) %s::pg_catalog.text)", sanitize(q.Key, maxKey), hashText(r.config.Key, kindKey, q.Key))
	}
	if q.User != "" {
		t.add("(user_id OPERATOR(pg_catalog.=) %s::pg_catalog.text OR user_id OPERATOR(pg_catalog.=) %s::pg_catalog.text)", sanitize(q.User, maxUser), hashText(r.config.Key, kindUser, q.User))
	}
	if q.Network.IsValid() {
		of := q.Network.Masked()
		t.add("(ip_address OPERATOR(pg_catalog.<<=) %s::pg_catalog.text::pg_catalog.inet OR ip_address OPERATOR(pg_catalog.=) %s::pg_catalog.text::pg_catalog.inet)", of.String(), clientaddr.Network(of.Addr()).String())
	}
	if q.Endpoint != "" {
		t.addEndpoint(q.Endpoint)
	}
	switch q.Mode {
	case ModeEnforced:
		t.add("NOT shadow")
	case ModeShadow:
		t.add("shadow")
	}
	if q.After != (Position{}) {
		// The first condition is redundant, but lets PostgreSQL skip partitions.
		t.add("requested_at OPERATOR(pg_catalog.<=) %s::pg_catalog.timestamptz AND (requested_at, violation_id) OPERATOR(pg_catalog.<) (%s::pg_catalog.timestamptz, %s::bigint)", q.After.At, q.After.At, q.After.ID)
	}
	if len(t.all) == 0 {
		return "", t.args
	}
	return " WHERE " + strings.Join(t.all, " AND "), t.args
}

// addEndpoint adds a condition on the endpoint's prefix, or on the path's.
func (t *conditions) addEndpoint(begin string) {
	of := "endpoint"
	if strings.HasPrefix(begin, "/") {
		of = "pg_catalog.substr(endpoint, pg_catalog.strpos(endpoint, ' ') OPERATOR(pg_catalog.+) 1)" // the whole endpoint if it has no method
	}
	// Sanitizing makes the prefix ASCII, so it never ends within a character.
	t.add("pg_catalog.starts_with("+of+", %s::pg_catalog.text)", sanitize(begin, maxEndpoint))
}
