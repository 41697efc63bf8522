// SPDX-License-Identifier: Apache-2.0

package aitokens_test

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/ai"
)

// The bounds of ai.Ratios rest on these numbers: how many times the estimate of ai.SimpleWord texts have, by the newer and the older
// vocabulary. The texts of languages are from the Universal Declaration of Human Rights.
func TestTexts(t *testing.T) {
	random := make([]byte, 3000)
	rand.NewChaCha8([32]byte{}).Read(random)
	file := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		what, text   string
		newer, older float64
	}{
		{"English", "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience.", 0.8, 0.8},
		{"German", "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.", 0.9, 1.1},
		{"Russian", "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.", 0.45, 0.8},
		{"Chinese", "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。", 0.8, 1.2},
		{"Hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।", 0.32, 1.1},
		{"Amharic", "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።", 2.1, 2.8},
		{"Markdown", file("../README.md"), 1.0, 1.0},
		{"Go", file("counter.go"), 1.1, 1.1},
		{"base64", base64.StdEncoding.EncodeToString(random), 2.7, 2.85},
		{"hex", hex.EncodeToString(random), 2.3, 2.3},
		{"spaces", strings.Repeat(" ", 4000), 0.04, 0.04},
	} {
		simple := float64(ai.SimpleWord(&ai.Request{Text: ai.Text{Bytes: int64(len(tt.text)), Chars: int64(utf8.RuneCountInString(tt.text))}}))
		newer, older := float64(counter.Count("gpt-4o", tt.text))/simple, float64(counter.Count("gpt-4", tt.text))/simple
		if max(newer/tt.newer, tt.newer/newer, older/tt.older, tt.older/older) > 1.2 {
			t.Errorf("%s: %.2f and %.2f times simple_word, want %v and %v", tt.what, newer, older, tt.newer, tt.older)
		}
	}
}
