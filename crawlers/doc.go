// SPDX-License-Identifier: Apache-2.0

// Package crawlers recognizes robots by their user agent. It supplies the attribute ua:bot of policies:
//
//	matcher, err := policy.Load(file, policy.Options{Facts: policy.Facts{Find: crawlers.Find}})
//
// Robots are search engines, AI crawlers, link previews, monitors, scanners, and HTTP libraries such as curl. A client
// chooses its own user agent, so ua:bot helps with robots that identify themselves, and with no others.
//
// The file patterns.txt has the patterns of https://github.com/monperrus/crawler-user-agents, version 1.60.0, with
// the license in PATTERNS-LICENSE. The script update replaces them with the latest version.
package crawlers
