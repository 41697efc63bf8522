// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/topkeys"
)

// Unmask returns the key that /v1/top shows as masked to who may not see it, as long
// as it is in those lists. Which key that is must not be told to them. It does not wait
// for anything.
func (a *API) Unmask(_ context.Context, masked string) (key string, ok bool) {
	limit, ok := maskedLimit(masked)
	if !ok || a.top.Tracker == nil {
		return "", false
	}
	mask, now := masker{a.top.MaskKey}, a.top.Now()
	for _, rule := range a.rulesWith(limit) {
		for _, kind := range []topkeys.Kind{topkeys.Denied, topkeys.Near, topkeys.Shadow} {
			for _, k := range a.top.Tracker.Top(now, rule, kind, 0).Keys {
				if mask.key(limit, k.Key) == masked {
					return k.Key, true
				}
			}
		}
	}
	return "", false
}

// rulesWith are the names of the rules that have a limit of that name.
func (a *API) rulesWith(limit string) (names []string) {
	if m := a.lim.Policy(); m != nil {
		for _, r := range m.Rules() {
			for i := range r.Limits {
				if r.Limits[i].Name == limit {
					names = append(names, r.Name)
				}
			}
		}
	}
	return names
}

// maskedLimit returns the limit that stands in a masked key. A tilde behind a colon is
// in no other.
func maskedLimit(key string) (limit string, ok bool) {
	at := strings.LastIndex(key, ":~")
	if at < 0 || len(key)-at-2 != 2*maskBytes || strings.Trim(key[at+2:], "0123456789abcdef") != "" {
		return "", false
	}
	return key[:at], true
}

// maskBucket leaves of x what those may see who may not see keys. The key is masked for
// who asked by a mask. Who asked by the key knows it, and must not be told its mask: by
// that, they could find out whose the others are.
func (a *API) maskBucket(x *api.Bucket, key bool) {
	for _, o := range []*api.Override{x.Override, x.BlockedBy, x.AllowedBy} {
		maskOverride(o)
	}
	if !key {
		return
	}
	mask := masker{a.top.MaskKey}
	x.Key, x.Masked = mask.key(x.Limit, x.Key), true
	for i := range x.Parts {
		mask.part(&x.Parts[i])
	}
}

// trueKey is the key that is meant by one that may be masked.
func (a *API) trueKey(ctx context.Context, key string) (string, *api.Problem) {
	if key == "" {
		return "", api.NewProblem(http.StatusBadRequest, "the key is missing; send that of a bucket, as an explanation or /v1/top shows it")
	}
	if _, masked := maskedLimit(key); !masked {
		return key, nil
	}
	if known, ok := a.Unmask(ctx, key); ok {
		return known, nil
	}
	return "", api.NewProblem(http.StatusNotFound, "no key that is masked like this is among the top keys of this server at the moment; it may be among another's")
}
