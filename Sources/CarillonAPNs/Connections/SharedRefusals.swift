/// The rejections of one turn that also apply to waiting pushes: one for each APNs topic, and one for the push credentials.
///
/// A rejection of the push credentials ends every waiting push. A rejection of an APNs topic ends the waiting pushes for this
/// APNs topic.
struct SharedRefusals {
    private var ofCredentials: RawAnswer?
    /// The first rejection of the turn for each APNs topic.
    private var ofTopics: [String: RawAnswer] = [:]

    var count: Int { ofTopics.count + (ofCredentials == nil ? 0 : 1) }
    var isEmpty: Bool { ofCredentials == nil && ofTopics.isEmpty }

    /// Records the rejection of a push.
    ///
    /// - Parameter topic: The rejected APNs topic; nil if the push credentials were rejected.
    mutating func refused(_ answer: RawAnswer, topic: String?) {
        // The IDs belong only to the push that was rejected.
        var answer = answer
        (answer.id, answer.uniqueID, answer.requestID) = (nil, nil, nil)
        if let topic {
            if ofTopics[topic] == nil { ofTopics[topic] = answer }
        } else if ofCredentials == nil {
            ofCredentials = answer
        }
    }

    /// Returns the rejection of a push with the APNs topic; nil if the push can be sent.
    func answer(topic: String?) -> RawAnswer? {
        if let ofCredentials { return ofCredentials }
        guard let topic else { return nil }
        return ofTopics[topic]
    }
}
