// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestConvert(t *testing.T) {
	for name, tt := range map[string]struct{ trace, want string }{
		"Azure": {
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			`{"at":1700158546.68059,"duration":0.88,"ai":{"model":"m","prompt_tokens":374},"usage":{"input":374,"output":44}}
{"at":1700158550.995169,"duration":2.18,"ai":{"model":"m","prompt_tokens":396},"usage":{"input":396,"output":109}}
`,
		},
		"Mooncake": {
			`{"timestamp": 27482, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}`,
			`{"at":27.482,"duration":10,"ai":{"model":"m","prompt_tokens":6758},"usage":{"input":6758,"output":500}}
`,
		},
	} {
		var got strings.Builder
		if err := convert(&got, strings.NewReader(tt.trace), "m", 20*time.Millisecond); err != nil || got.String() != tt.want {
			t.Errorf("%s: got %s (%v), want %s", name, got.String(), err, tt.want)
		}
	}
	for _, bad := range []string{"a,b,c\nsoon,1,2\n", "a,b,c\n2023-11-16 18:15:46,x,2\n", "a,b,c\n1,2\n", `{"timestamp": "x"}`} {
		if err := convert(&strings.Builder{}, strings.NewReader(bad), "m", 0); err == nil {
			t.Errorf("%q has no error", bad)
		}
	}
}
