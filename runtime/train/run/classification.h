// Labelled texts as records of a classifier, and how often it is right.
#ifndef WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_
#define WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_

#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/data/labelled.h"
#include "runtime/layers/classifier.h"

namespace wisp {

// Texts with the label of each as its one target. Views: `sequences` must outlive them.
std::vector<Record> RecordsOf(const data::LabelledSequences& sequences);

// The class with the largest logit, the first of equals; of the context's head_input.
uint32_t Predict(const Classifier& graph, RecordContext& context, std::span<const int32_t> tokens);

// Share of records whose class is predicted; 0 for none. Local-only where the records are private.
double Accuracy(const Classifier& graph, const float* flat, std::span<const Record> records, const HeadInput& input,
                Workers& workers);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CLASSIFICATION_H_
