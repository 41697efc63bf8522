module github.com/metehq/mete/proof

go 1.26.0

require github.com/metehq/mete v0.0.0

replace github.com/metehq/mete => ../
