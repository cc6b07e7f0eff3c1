/// A thousand device tokens of 64 digits, which are reused, because the library is measured and not this list.
struct DeviceTokens: Sendable {
    private let tokens: [String]

    init() {
        var state: UInt64 = 1
        tokens = (0..<1000).map { _ in
            (0..<4).map { _ -> String in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let digits = String(state, radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }.joined()
        }
    }

    subscript(number: Int) -> String { tokens[number % tokens.count] }

    /// Returns the given number of tokens, which are made while they are read.
    func first(_ count: Int) -> some Sequence<String> {
        (0..<count).lazy.map { [tokens] in tokens[$0 % tokens.count] }
    }
}
