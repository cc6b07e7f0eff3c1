import ArgumentParser
import Foundation

/// The recipients of a notification.
struct RecipientOptions: ParsableArguments {
    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp("A device token in hexadecimal digits, or several; can be repeated."))
    var token: [String] = []
    @Option(
        help: ArgumentHelp(
            """
            A file with one device token per line; \"-\" is standard input. Blank lines and lines that begin with # are \
            ignored. The file is read while pushes are sent, so it can have any length. A token that appears twice gets two \
            pushes, unless --once is set.
            """, valueName: "file"))
    var tokensFile: String?
    @Flag(help: "Push to each device token only once. This takes about 30 bytes of memory for each token.")
    var once = false
    @Option(
        help: ArgumentHelp(
            "Broadcast the update or end of a Live Activity to this channel, in place of device tokens.", valueName: "id"))
    var channel: String?

    func validate() throws {
        let said = [!token.isEmpty, tokensFile != nil, channel != nil].count(where: \.self)
        guard said <= 1 else { throw ValidationError("Use only one of --token, --tokens-file and --channel.") }
        guard !once || channel == nil else {
            throw ValidationError("--once is for device tokens; leave it out, as a broadcast is one push.")
        }
        for token in token where !Self.isToken(token) {
            throw ValidationError(
                "A device token must be an even number of hexadecimal digits, not \"\(token.prefix(80))\".")
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
