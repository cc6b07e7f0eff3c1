#if !Provider
    #error("CarillonAPNs needs the trait Provider: .package(url: \"…\", from: \"…\", traits: [\"Provider\"])")
#endif
