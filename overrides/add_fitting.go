// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/policy"
)

// addFitting returns base with the overrides that fit it, and the errors of the others by ID.
func addFitting(base *policy.Matcher, list []policy.Override, now time.Time) (*policy.Matcher, map[string]policy.Errors) {
	unfit := map[string]policy.Errors{}
	list = slices.Clone(list)
	for most := max(policy.MaxOverrides-len(base.Overrides()), 0); len(list) > most; list = list[:len(list)-1] {
		unfit[list[len(list)-1].ID] = policy.Errors{{Reason: fmt.Sprintf("more than %d overrides, including the overrides of the policy file", policy.MaxOverrides)}}
	}
	for len(list) > 0 {
		next, err := base.WithOverrides(list, now)
		if err == nil {
			return next, unfit
		}
		wrong := splitErrors(err, len(list))
		kept := list[:0:0]
		for i, o := range list {
			if wrong[i] == nil {
				kept = append(kept, o)
			} else {
				unfit[o.ID] = wrong[i]
			}
		}
		list = kept
	}
	return base, unfit
}

// splitErrors splits an error of [policy.Matcher.WithOverrides] by the index of the override in the list. Paths
// become relative to the override. Errors without an index belong to the last override.
func splitErrors(err error, n int) map[int]policy.Errors {
	all, ok := errors.AsType[policy.Errors](err)
	if !ok {
		all = policy.Errors{{Reason: err.Error()}}
	}
	by := map[int]policy.Errors{}
	for _, e := range all {
		number, rest, inside := strings.Cut(strings.TrimPrefix(e.Path, "/"), "/")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= n {
			i = n - 1
		} else if e.Path = ""; inside {
			e.Path = "/" + rest
		}
		by[i] = append(by[i], e)
	}
	return by
}
