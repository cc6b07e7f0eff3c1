import ArgumentParser
import Foundation

/// The recipients of a notification.
struct RecipientOptions: ParsableArguments {
    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("A device token in hexadecimal digits; more may follow, or the option be repeated."))
    var token: [String] = []
    @Option(
        help: ArgumentHelp(
            """
            A file with one device token a line; \"-\" is standard input. Blank lines and what begins with # are passed \
            over. It is read as it is sent, so that it may be of any length. A token that stands in it twice is pushed to \
            twice, without --once.
            """, valueName: "file"))
    var tokensFile: String?
    @Flag(help: "Push to each device token once, however often it is given; that takes some 30 bytes of memory for each.")
    var once = false
    @Option(help: ArgumentHelp("Broadcast a Live Activity's update or end to this channel instead.", valueName: "id"))
    var channel: String?

    func validate() throws {
        let said = [!token.isEmpty, tokensFile != nil, channel != nil].count(where: \.self)
        guard said <= 1 else { throw ValidationError("Say one of --token, --tokens-file and --channel.") }
        guard !once || channel == nil else { throw ValidationError("--once is for device tokens; a broadcast is one push.") }
        for token in token where !Self.isToken(token) {
            throw ValidationError(
                "A device token is an even number of hexadecimal digits, not \"\(token.prefix(80))\".")
        }
    }

    var areGiven: Bool { !token.isEmpty || tokensFile != nil || channel != nil }

    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count.isMultiple(of: 2)
            && text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }

    /// Returns the push tokens; nil for a broadcast.
    func feed() throws -> TokenFeed? {
        guard let tokensFile else { return token.isEmpty ? nil : TokenFeed(token, once: once) }
        return try TokenFeed(file: tokensFile, once: once)
    }
}
