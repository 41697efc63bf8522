// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/testseed"
)

// requestsPerTrial is the number of requests for one configuration.
const requestsPerTrial = 200

// TestAgree sends random requests for random configurations to the original and to mete. All answers and all
// statistics must be equal: 4,000 requests in a short run, 100,000 in a long one.
func TestAgree(t *testing.T) {
	program := buildOriginal(t, ".")
	headers := []string{"LIMIT_RESPONSE_HEADERS_ENABLED=true"}
	names := &dropin.HeaderNames{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}
	for _, tt := range []struct {
		name     string
		settings []string
		options  dropin.Options
		part     int // of ten parts of all requests
	}{
		{"defaults", nil, dropin.Options{}, 3},
		{"headers and metadata", append(headers, "RESPONSE_DYNAMIC_METADATA=true"), dropin.Options{Headers: names, DynamicMetadata: true}, 4},
		{"shadow", append(headers, "SHADOW_MODE=true"), dropin.Options{Headers: names, ShadowMode: true}, 1},
		{"quota", append(headers, "QUOTA_MODE=true"), dropin.Options{Headers: names, QuotaMode: true}, 1},
		{"stop counting", []string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"}, dropin.Options{StopCounting: true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !newestOriginal() && (tt.options.QuotaMode || tt.options.DynamicMetadata) {
				if tt.options.QuotaMode {
					t.Logf("quotas have another meaning in the released original: set %s", sourceVar)
					return
				}
				tt.settings, tt.options.DynamicMetadata = headers, false
			}
			requests := 400 * tt.part
			if !testing.Short() {
				requests = 10_000 * tt.part
			}
			o := startOriginal(t, program, tt.settings...)
			r := rand.New(testseed.PCG(uint64(len(tt.name)), 21))
			for i := range requests / requestsPerTrial {
				tr := maker{Rand: r, newest: newestOriginal()}.trial(requestsPerTrial)
				if difference := compare(t, o, tt.options, tr); difference != "" {
					report(t, o, tt.options, tr, i)
					if t.Failed() && os.Getenv("METE_TEST_ALL") == "" {
						return
					}
				}
			}
		})
	}
}

// compare runs a trial from the beginning on both. It returns the first difference, or "".
func compare(t testing.TB, o *original, options dropin.Options, tr *trial) string {
	t.Helper()
	if err := o.clear(); err != nil {
		t.Fatal(err)
	}
	m := newOurs(t, options)
	theirErr, ourErr := o.load(tr.files()...), m.load(tr.files()...)
	if (theirErr == nil) != (ourErr == nil) {
		return fmt.Sprintf("load: theirs: %v, ours: %v", theirErr, ourErr)
	}
	if theirErr != nil {
		return ""
	}
	before, err := o.counters()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range tr.steps {
		theirs, theirErr := o.answer(s.at, s.request)
		ours, ourErr := m.answer(s.at, s.request)
		if d := compareAnswers(theirs, theirErr, ours, ourErr); d != "" {
			return fmt.Sprintf("request %d at %d: %s\n%s", i, s.at.Unix(), prototext.Format(s.request), d)
		}
	}
	after, err := o.counters()
	if err != nil {
		t.Fatal(err)
	}
	return compareCounters(before, after, m.counters())
}

func compareAnswers(theirs *ratelimitv3.RateLimitResponse, theirErr error, ours *ratelimitv3.RateLimitResponse, ourErr error) string {
	if theirErr != nil || ourErr != nil {
		// The original's errors have the code UNKNOWN. Mete's are INVALID_ARGUMENT, and name the remedy.
		if status.Code(theirErr) == codes.Unknown && status.Code(ourErr) == codes.InvalidArgument {
			return ""
		}
		return fmt.Sprintf("error: theirs: %v, ours: %v", theirErr, ourErr)
	}
	for _, resp := range []*ratelimitv3.RateLimitResponse{theirs, ours} {
		evenSpaces(resp.GetDynamicMetadata().GetFields()["descriptors"])
	}
	if proto.Equal(theirs, ours) {
		return ""
	}
	return fmt.Sprintf("theirs:\n%sours:\n%s", prototext.Format(theirs), prototext.Format(ours))
}

// evenSpaces removes double spaces from the texts of limits in dynamic metadata. The text format of messages has them
// in some programs and not in others, on purpose.
func evenSpaces(descriptors *structpb.Value) {
	for _, d := range descriptors.GetListValue().GetValues() {
		if fields := d.GetStructValue().GetFields(); fields["limit"] != nil {
			fields["limit"] = structpb.NewStringValue(strings.ReplaceAll(fields["limit"].GetStringValue(), "  ", " "))
		}
	}
}

// compareCounters compares the counters of limits and domains.
func compareCounters(before, after, ours map[string]uint64) string {
	const prefix = "ratelimit.service."
	theirs := map[string]uint64{}
	for name, value := range after {
		if strings.HasPrefix(name, prefix) && value > before[name] && !strings.Contains(name, ".config_load_") {
			theirs[name] = value - before[name]
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if ours[name] != theirs[name] {
			lines = append(lines, fmt.Sprintf("%s: theirs: %d, ours: %d", name, theirs[name], ours[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if theirs[name] == 0 && strings.HasPrefix(name, prefix) && !strings.Contains(name, ".config_load_") {
			lines = append(lines, fmt.Sprintf("%s: theirs: 0, ours: %d", name, ours[name]))
		}
	}
	return strings.Join(lines, "\n")
}

// report shrinks a failed trial and prints it.
func report(t *testing.T, o *original, options dropin.Options, tr *trial, number int) {
	t.Helper()
	difference := func(tr *trial) string { return compare(t, o, options, tr) }
	small := shrink(tr, func(tr *trial) bool { return difference(tr) != "" })
	var b strings.Builder
	for _, f := range small.files() {
		fmt.Fprintf(&b, "# %s\n%s", f.Name, f.Data)
	}
	for _, s := range small.steps {
		fmt.Fprintf(&b, "# at %d.%03d\n%s", s.at.Unix(), s.at.Nanosecond()/1e6, prototext.Format(s.request))
	}
	t.Errorf("trial %d: %s\n%s", number, difference(small), b.String())
}
