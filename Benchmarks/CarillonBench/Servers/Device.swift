/// A registered device with one channel.
struct Device: Sendable {
    var id: String
    var credential: String
    var token: String

    /// Returns the channel ID of the n-th device.
    static func channelID(_ index: Int) -> String {
        let digits = String(index, radix: 16)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }
}
