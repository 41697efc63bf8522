// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
)

// columns are the columns that COPY writes, in order.
var columns = []string{
	"violation_id", "bucket_key", "user_id", "ip_address", "endpoint", "requested_at", "tokens_at_time",
	"rule_name", "limit_name", "reason", "cost", "retry_after", "denials", "last_at", "shadow", "node",
}

// append appends the row in the text format of COPY, which needs no prepared statement. The function there
// converts local times to the database's clock.
func (r *row) append(dst []byte, number int64, node string, there func(time.Time) time.Time) []byte {
	w := copyWriter{strconv.AppendInt(dst, number, 10)}
	w.text(r.key, false)
	w.text(r.user, true)
	w.prefix(r.addr)
	w.text(r.endpoint, true)
	w.time(there(r.first))
	w.tokens(r.tokens)
	w.text(sanitize(r.id.rule, maxRule), false)
	w.text(sanitize(r.id.limit, maxLimit), false)
	w.text(sanitize(r.id.reason, maxReason), false)
	w.tokens(r.cost)
	w.wait(r.retry)
	w.number(r.count)
	w.time(there(r.last))
	w.bool(r.id.shadow)
	w.text(node, false)
	return append(w.line, '\n')
}

type copyWriter struct{ line []byte }

func (w *copyWriter) null() { w.line = append(w.line, "\t\\N"...) }

func (w *copyWriter) text(s string, emptyIsNull bool) {
	if s == "" && emptyIsNull {
		w.null()
		return
	}
	w.line = append(w.line, '\t')
	for i := range len(s) {
		if s[i] == '\\' {
			w.line = append(w.line, '\\')
		}
		w.line = append(w.line, s[i])
	}
}

func (w *copyWriter) prefix(p netip.Prefix) {
	if !p.IsValid() {
		w.null()
		return
	}
	w.line = p.AppendTo(append(w.line, '\t'))
}

func (w *copyWriter) time(t time.Time) {
	w.line = t.UTC().AppendFormat(append(w.line, '\t'), "2006-01-02 15:04:05.000000+00")
}

func (w *copyWriter) number(n int64) { w.line = strconv.AppendInt(append(w.line, '\t'), n, 10) }

func (w *copyWriter) tokens(t bucket.Tokens) {
	if t < 0 {
		w.null()
		return
	}
	w.line = strconv.AppendFloat(append(w.line, '\t'), float64(t)/float64(bucket.Token), 'g', -1, 64)
}

func (w *copyWriter) wait(d time.Duration) {
	if d == bucket.Never {
		w.null()
		return
	}
	w.number(d.Microseconds())
	w.line = append(w.line, " microseconds"...)
}

func (w *copyWriter) bool(b bool) { w.line = strconv.AppendBool(append(w.line, '\t'), b) }
