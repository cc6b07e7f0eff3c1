import CarillonCore
import Testing

struct CallRulesTests {
    private func addresses(_ texts: [String]) -> [NetworkAddress] { texts.compactMap { NetworkAddress($0) } }

    @Test func `of the addresses of one name, private ones are not called, in any mixture`() {
        let open = ["93.184.215.14", "2606:4700::1111"]
        let closed = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::a00:1"]
        let rules = CallRules()
        for address in closed {
            for mixed in [[address] + open, open + [address], [open[0], address, open[1]]] {
                #expect(rules.allowed(addresses(mixed)) == addresses(open))
            }
        }
        #expect(rules.allowed(addresses(closed)).isEmpty)
        #expect(CallRules(allowsPrivate: true).allowed(addresses(closed)) == addresses(closed))
    }
}
