// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"fmt"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

func show(resp *ratelimitv3.RateLimitResponse) string {
	var all []string
	for _, st := range resp.Statuses {
		left := fmt.Sprint(st.LimitRemaining)
		if st.CurrentLimit == nil && st.LimitRemaining == 0 {
			left = "-"
		}
		all = append(all, fmt.Sprint(st.Code, " ", left))
	}
	return strings.Join(all, ", ")
}
