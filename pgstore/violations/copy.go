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

// append appends the row in the text format of COPY, which needs no prepared statement. The parameter toServer
// converts local times to the database's clock.
func (r *row) append(dst []byte, number int64, node string, toServer func(time.Time) time.Time) []byte {
	w := copyWriter{strconv.AppendInt(dst, number, 10)}
	w.writeText(r.key, false)
	w.writeText(r.user, true)
	w.writePrefix(r.addr)
	w.writeText(r.endpoint, true)
	w.writeTime(toServer(r.first))
	w.writeTokens(r.tokens)
	w.writeText(sanitize(r.id.rule, maxRule), false)
	w.writeText(sanitize(r.id.limit, maxLimit), false)
	w.writeText(sanitize(r.id.reason, maxReason), false)
	w.writeTokens(r.cost)
	w.writeWait(r.retry)
	w.writeInt(r.count)
	w.writeTime(toServer(r.last))
	w.writeBool(r.id.shadow)
	w.writeText(node, false)
	return append(w.line, '\n')
}

type copyWriter struct{ line []byte }

func (w *copyWriter) writeNull() { w.line = append(w.line, "\t\\N"...) }

func (w *copyWriter) writeText(s string, emptyIsNull bool) {
	if s == "" && emptyIsNull {
		w.writeNull()
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

func (w *copyWriter) writePrefix(p netip.Prefix) {
	if !p.IsValid() {
		w.writeNull()
		return
	}
	w.line = p.AppendTo(append(w.line, '\t'))
}

func (w *copyWriter) writeTime(t time.Time) {
	w.line = t.UTC().AppendFormat(append(w.line, '\t'), "2006-01-02 15:04:05.000000+00")
}

func (w *copyWriter) writeInt(n int64) { w.line = strconv.AppendInt(append(w.line, '\t'), n, 10) }

func (w *copyWriter) writeTokens(t bucket.Tokens) {
	if t < 0 {
		w.writeNull()
		return
	}
	w.line = strconv.AppendFloat(append(w.line, '\t'), float64(t)/float64(bucket.Token), 'g', -1, 64)
}

func (w *copyWriter) writeWait(d time.Duration) {
	if d == bucket.Never {
		w.writeNull()
		return
	}
	w.writeInt(d.Microseconds())
	w.line = append(w.line, " microseconds"...)
}

func (w *copyWriter) writeBool(b bool) { w.line = strconv.AppendBool(append(w.line, '\t'), b) }
