/// The refusals of one turn that pushes which wait would have, too: one for each topic, and one for the credentials.
///
/// A refusal of the credentials ends every push that waits, and a refusal of a topic ends the pushes for this topic.
struct SharedRefusals {
    private var ofCredentials: RawAnswer?
    /// The first refusal of the turn for each topic.
    private var ofTopics: [String: RawAnswer] = [:]

    var count: Int { ofTopics.count + (ofCredentials == nil ? 0 : 1) }
    var isEmpty: Bool { ofCredentials == nil && ofTopics.isEmpty }

    /// A push was refused.
    ///
    /// - Parameter topic: The topic that was refused; nil if the credentials were refused.
    mutating func refused(_ answer: RawAnswer, topic: String?) {
        // The IDs are those of the push that was refused.
        var answer = answer
        (answer.id, answer.uniqueID, answer.requestID) = (nil, nil, nil)
        if let topic {
            if ofTopics[topic] == nil { ofTopics[topic] = answer }
        } else if ofCredentials == nil {
            ofCredentials = answer
        }
    }

    /// Returns the refusal of a push with the topic; nil if the push can be sent.
    func answer(topic: String?) -> RawAnswer? {
        if let ofCredentials { return ofCredentials }
        guard let topic else { return nil }
        return ofTopics[topic]
    }
}
