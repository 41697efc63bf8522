// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// pushbackKey is the trailer that gRPC's own retries obey (gRFC A6). A negative value forbids a retry.
const pushbackKey = "grpc-retry-pushback-ms"

// trailerKeys maps header fields to trailer keys. It omits Retry-After, because RetryInfo is exact.
var trailerKeys = map[string]string{
	"Ratelimit-Policy": "ratelimit-policy", "Ratelimit": "ratelimit", "X-Ratelimit-Reason": "x-ratelimit-reason",
}

// newFields returns the writer of the trailers. Their waits are exact, because clients add their own jitter.
func newFields() (*ratelimitfields.Writer, error) {
	return ratelimitfields.New(ratelimitfields.Config{Dialects: []string{"draft-11"}, ExactWaits: true})
}

func (in *Interceptor) trailers(d *mete.Decision) metadata.MD {
	if d.Allowed && (in.config.OmitTrailers || len(d.Limits()) == 0) {
		return nil
	}
	h := http.Header{}
	in.fields.Header(h, d)
	md := make(metadata.MD, len(h)+1)
	for name, values := range h {
		if key := trailerKeys[name]; key != "" {
			md[key] = values
		}
	}
	if !d.Allowed {
		md[pushbackKey] = []string{pushback(ratelimitfields.ExactWait(d))}
	}
	return md
}

// pushback formats a wait in milliseconds, rounded up.
func pushback(wait time.Duration) string {
	ms := int64((wait + time.Millisecond - 1) / time.Millisecond)
	if wait == bucket.Never || ms > math.MaxInt32 || ms < 0 {
		return "-1"
	}
	return strconv.FormatInt(ms, 10)
}
